/**
 * Machines that netbooted and are no hosts: taken in as racks' agents tell of them, matched with
 * the manifest and the rules of their rack, made hosts.
 *
 * D1 By level: a change here makes what has to do with it be looked at again. Whatever was missed
 *    (a crash, another replica) is found when everything is, at intervals.
 * D2 A host is made first, then recorded, the line of the manifest marked next, the machine's
 *    record removed last. A crash between leaves a machine that is a host already, which the next
 *    look removes; the host is made under a request id that follows from machine or line, so that
 *    it is made once.
 * D4 A full list is no obstacle for a machine that is expected or that a rule fits: what was seen
 *    longest ago of those that fit nothing goes. A machine that fits nothing drives out none.
 * D5 What a rack's agent tells changes hosts and listings of that rack only, and is answered with
 *    nothing of another rack. A machine that two racks tell of is listed in each.
 * D3 One thing at a time: a machine is not accepted twice at once here, and between replicas the
 *    reservations of its MACs decide.
 */
import {
  ApiFailure,
  aborted,
  type agent,
  type CreateHostRequest,
  failedPrecondition,
  type Host,
  type HostSpec,
  type Rack,
  type RackId,
  type RackName,
  type store as wire,
} from '@rackwright/messages';
import type { Revision } from '@rackwright/store';
import type { AuditTrail } from '../audit/index.ts';
import { Controller } from '../loop/index.ts';
import { idOf, isAway, isBusy, untilWritten } from '../records/index.ts';
import { SeenElsewhere } from './elsewhere.ts';
import { Intake, type IntakeDependencies } from './intake.ts';
import { type Acceptance, hostOf, judge } from './judge.ts';
import { havingKeys, type KeptMachine, keysOfMachine, lineKey, rackKey } from './kept.ts';
import { markLine, markTaken } from './lines.ts';
import { noteWords, removeMachine, seedFacts } from './listing.ts';
import {
  type AcceptedFrom,
  acceptanceEvent,
  acceptedBy,
  creationOf,
  discoveryActor,
  fromOf,
  lineRequestId,
  machineRequestId,
  problemOf,
} from './request.ts';
import { machinesMaxOf } from './room.ts';
import {
  type DiscoverySnapshot,
  type HostFinder,
  type KnownHost,
  type Listed,
  SnapshotReader,
} from './snapshot.ts';

export interface DiscoveryDependencies extends IntakeDependencies {
  readonly fleetView: HostFinder;
  /** Everything is looked at again after this at the latest. */
  readonly resyncIntervalMs: number;
  /** Where acceptances that no person asked for are recorded; absent: nowhere. */
  readonly audit?: Pick<AuditTrail, 'keepOnce'>;
  /** CreateHost, with all its checks and reservations. */
  readonly createHost: (request: CreateHostRequest, from: AcceptedFrom) => Promise<Host>;
}

/** Boots of unknown machines that an agent has under way at once, and lets begin in an hour. */
const bootsMax = 64;
const bootsPerHourMax = 512;
const resyncMsMin = 10_000;
/** Machines or lines for which the store and the view are asked at once. */
const looksAtOnce = 32;

export class Discovery {
  readonly #deps: DiscoveryDependencies;
  readonly #reader: SnapshotReader;
  /** By their keys (`kept.ts`), machines and lines that are to be looked at; undefined: all. */
  #due: Set<string> | undefined = new Set();
  /** What is listed, as of the last look. */
  #listed: Listed | undefined;
  readonly #elsewhere = new SeenElsewhere();
  readonly #intake: Intake;
  /** D3: one thing, all discovered machines. */
  readonly #controller: Controller<'machines'>;

  constructor(deps: DiscoveryDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      retryDelayMs: resyncMsMin,
      keyOf: String,
      fieldsOf: (discovered) => ({ discovered }),
      pass: () => this.#lookAtDue(),
    });
    this.#reader = new SnapshotReader(deps.store, deps.fleetView);
    this.#intake = new Intake(deps, this.#elsewhere);
  }

  start(): void {
    this.wake();
    const resyncIntervalMs = Math.max(this.#deps.resyncIntervalMs, resyncMsMin);
    this.#controller.resync(resyncIntervalMs, () => this.wake());
  }

  stop(): void {
    this.#controller.stop();
  }

  /** Machines of a rack ("racks/r1") that are listed and not accepted, as of the last look. */
  listedIn(rack: RackName): number {
    return this.#listed?.machines.countBy(rackKey(rack)) ?? 0;
  }

  /** What a person should know of a rack's discovery, a line each; as of the last look. */
  remarksOf(rack: Rack | undefined): string[] {
    const { name = '', spec } = rack ?? {};
    const listed = this.listedIn(name);
    const most = machinesMaxOf(spec?.discovery);
    const full =
      spec?.discovery?.enabled === true && listed >= most
        ? [
            `${listed} discovered machines are listed, of ${most}: no other that fits nothing is ` +
              'listed until some are accepted or deleted',
          ]
        : [];
    return [...full, ...this.#elsewhere.remarksOf(name)];
  }

  /** What the rack's agent is to do with machines that nobody knows. */
  policyFor(
    record: wire.RackRecord | undefined,
  ): Omit<agent.Discovery, '$typeName' | 'generation'> {
    const policy = record?.rack?.spec?.discovery;
    const enabled = policy?.enabled === true;
    // Also while the list is full: whether a machine is expected shows only once it has booted.
    return { enabled, bootsMax: enabled ? bootsMax : 0, bootsPerHourMax };
  }

  /**
   * Something has changed that a machine may have waited for: the machines and lines that have one
   * of these keys (`kept.ts`) are looked at soon; undefined: all.
   */
  wake(keys?: readonly string[]): void {
    if (keys === undefined) this.#due = undefined;
    else for (const key of keys) this.#due?.add(key);
    this.#controller.wake('machines', 'look');
  }

  /** The policy of a rack, "racks/RACK", has changed: its machines are looked at soon. */
  wakeRack(rack: RackName): void {
    this.wake([rackKey(rack)]);
  }

  /** Takes in a finding of a rack's agent. Resolves with why it is not listed; empty: it is. */
  report(rackId: RackId, finding: agent.Discovered): Promise<string> {
    return this.#queue(() => this.#takeIn(`racks/${rackId}`, finding));
  }

  /** Makes the machine a host at a person's word. Rejects as CreateHost does. */
  accept(
    id: string,
    acceptance: Acceptance & {
      readonly requestId: string;
      readonly actor: string;
      /** Revision of the listing that was looked at; undefined: any. */
      readonly lookedAt?: Revision | undefined;
      /** Rejects when the person may not make a host with this spec. */
      readonly check?: (spec: HostSpec) => Promise<void>;
    },
    validateOnly: boolean,
  ): Promise<Host | undefined> {
    return this.#queue(async () => {
      const found = await this.#reader.readOne(id);
      if (found === undefined) return undefined;
      const { kept, hosts } = found;
      const { lookedAt } = acceptance;
      if (lookedAt !== undefined && lookedAt !== kept.revision) throw changedSince(kept);
      const known = hostOf(kept, hosts);
      if (known !== undefined) {
        throw failedPrecondition('IS_A_HOST', `${kept.machine.name}: ${known.words}.`);
      }
      const { requestId, actor } = acceptance;
      const cause = `accepted by ${acceptance.by}: ${kept.machine.name}`;
      const from = fromOf(kept, { actor, cause });
      const request = creationOf(kept, acceptance, requestId, { validateOnly });
      if (request.host?.spec !== undefined) await acceptance.check?.(request.host.spec);
      const host = await this.#deps.createHost(request, from);
      if (!validateOnly) {
        await this.#settle(kept, host, undefined);
        this.wake([lineKey(acceptance.hostId), ...keysOfMachine(kept)]);
      }
      return host;
    });
  }

  #queue<T>(act: () => Promise<T>): Promise<T> {
    return this.#controller.take('machines', act);
  }

  async #takeIn(rack: RackName, finding: agent.Discovered): Promise<string> {
    const problem = problemOf(finding);
    if (problem !== undefined) return problem;
    const seen = this.#intake.seen(rack, finding);
    const keys = new Set(keysOfMachine(seen));
    const answer = await untilWritten(`a discovered machine of ${rack}`, async () => {
      const world = await this.#reader.read({ machines: [seen], lines: [] });
      // What it was taken for before has to do with it as well.
      for (const near of world.machines) for (const key of keysOfMachine(near)) keys.add(key);
      return this.#intake.takeIn(seen, { world, ofRack: () => this.#worldOf(rack) });
    });
    if (answer === '') await this.#lookAt(keys);
    return answer;
  }

  async #worldOf(rack: RackName): Promise<DiscoverySnapshot> {
    const { machines } = await this.#reader.listed();
    return await this.#reader.read({
      machines: havingKeys(machines, [rackKey(rack)]),
      lines: [],
    });
  }

  async #lookAtDue(): Promise<void> {
    const due = this.#due;
    this.#due = new Set();
    try {
      await this.#lookAt(due);
    } catch (error) {
      if (due === undefined) this.#due = undefined;
      else for (const key of due) this.#due?.add(key);
      throw error;
    }
  }

  /** D1: at what has one of these keys; undefined: at everything. */
  async #lookAt(keys: ReadonlySet<string> | undefined): Promise<void> {
    const touched = new Set(keys);
    const { machines } = await this.#noteListed();
    for (const some of groups(havingKeys(machines, keys))) {
      for (const key of some.flatMap(keysOfMachine)) touched.add(key);
      if (!(await this.#lookAtSome(some))) return;
    }
    const { lines } = await this.#noteListed();
    for (const some of groups(havingKeys(lines, keys && touched))) {
      if (this.#controller.signal.aborted) return;
      const world = await this.#reader.read({ machines: [], lines: some });
      await markTaken(this.#deps, some, world);
    }
  }

  async #noteListed(): Promise<Listed> {
    this.#listed = await this.#reader.listed();
    return this.#listed;
  }

  /** False: stopped. */
  async #lookAtSome(machines: readonly KeptMachine[]): Promise<boolean> {
    let world: DiscoverySnapshot | undefined;
    for (const { id } of machines) {
      if (this.#controller.signal.aborted) return false;
      world ??= await this.#reader.read({ machines, lines: [] });
      const kept = world.machines.find((each) => each.id === id);
      if (kept === undefined) continue;
      // What became a host counts for the next one: by its name, and for what a rule may make.
      if (await this.#decide(kept, world)) world = undefined;
    }
    return true;
  }

  /** Whether the machine is listed no more. */
  async #decide(kept: KeptMachine, world: DiscoverySnapshot): Promise<boolean> {
    if (!world.racks.has(kept.machine.rack)) {
      await removeMachine(this.#deps, kept);
      return true;
    }
    const decision = judge(kept, world);
    switch (decision.kind) {
      case 'host':
        await this.#record(kept, decision.host, acceptedBy(kept, decision.host, world));
        await seedFacts(this.#deps, decision.host, kept.machine);
        await removeMachine(this.#deps, kept);
        return true;
      case 'wait':
        await noteWords(this.#deps, kept, decision.words, world);
        return false;
      case 'accept':
        return await this.#acceptBySystem(kept, decision.acceptance, world);
    }
  }

  async #acceptBySystem(
    kept: KeptMachine,
    acceptance: Acceptance,
    world: DiscoverySnapshot,
  ): Promise<boolean> {
    const { expectedUid, by, rule } = acceptance;
    const requestId =
      expectedUid === undefined ? machineRequestId(kept.machine.uid) : lineRequestId(expectedUid);
    const from = fromOf(kept, { actor: discoveryActor, cause: `accepted by ${by}`, rule });
    try {
      const request = creationOf(kept, acceptance, requestId, { validateOnly: false });
      const host = await this.#deps.createHost(request, from);
      this.#deps.log.info({ host: host.name, machine: kept.machine.name, by }, 'accepted');
      await this.#record(kept, host, rule ?? by);
      await this.#settle(kept, host, expectedUid);
      return true;
    } catch (error) {
      // What passes by itself is nothing that a person should read at the machine.
      if (!(error instanceof ApiFailure) || isAway(error) || isBusy(error)) throw error;
      await noteWords(
        this.#deps,
        kept,
        `${by} fits, but it cannot be made a host: ${error.message}`,
        world,
      );
      return false;
    }
  }

  /** Who made it a host, of those that are no persons. Told again after a crash, on record once. */
  async #record(
    kept: KeptMachine,
    { name, uid }: Pick<KnownHost, 'name' | 'uid'>,
    by: string | undefined,
  ): Promise<void> {
    if (by === undefined) return;
    await this.#deps.audit?.keepOnce(acceptanceEvent(kept, name, by), `accepted-${uid}`);
  }

  /** D2: what follows once the host stands. */
  async #settle(kept: KeptMachine, host: Host, expectedUid: string | undefined): Promise<void> {
    const hostId = idOf(host.name);
    await seedFacts(this.#deps, { hostId, uid: host.uid, hasInventory: false }, kept.machine);
    if (expectedUid !== undefined) await markLine(this.#deps, hostId, expectedUid, host.name);
    await removeMachine(this.#deps, kept);
  }
}

function groups<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / looksAtOnce);
  return Array.from({ length: count }, (_, at) =>
    all.slice(at * looksAtOnce, (at + 1) * looksAtOnce),
  );
}

function changedSince({ machine: { name, rack, bootMac, bmcAddress } }: KeptMachine): ApiFailure {
  const bmc = bmcAddress === '' ? 'nothing of its BMC' : `its BMC is ${bmcAddress}`;
  const now = `it is in ${rack}, booted from ${bootMac} and says ${bmc}`;
  const words = `${name} was seen again since it was looked at: ${now}. Look and decide again.`;
  return aborted('ETAG_MISMATCH', words);
}
