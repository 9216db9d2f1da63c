/**
 * Machines that netbooted and are not hosts: agents report them, they are matched with the manifest
 * and the rules of their rack, and become hosts.
 *
 * D1 Level-triggered: a change here causes another pass over everything it affects. A missed change
 *    (a crash, another replica) is found by the periodic pass over everything.
 * D2 The order of writes is: create the host, record it, mark the line of the manifest, remove the
 *    machine's record. A crash in between leaves a machine that is already a host; the next pass
 *    removes it. The request id of the host follows from machine or line, so the host is created
 *    once.
 * D4 A full list does not stop a machine that is expected or matches a rule: the oldest machine
 *    that matches nothing is removed. A machine that matches nothing removes no other.
 * D5 A report of a rack's agent changes hosts and listings of that rack only, and the response
 *    contains nothing of another rack. A machine that two racks report is listed in each.
 * D3 One thing at a time: on this replica a machine is not accepted twice at once; between replicas
 *    the reservations of its MACs decide.
 */
import {
  type Actor,
  ApiFailure,
  aborted,
  agent,
  type CreateHostRequest,
  failedPrecondition,
  type Host,
  type HostSpec,
  type MachineId,
  type Rack,
  type RackId,
  type RackName,
  type RequestId,
  type store as wire,
} from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import type { AuditTrail } from '../audit/index.ts';
import { Controller } from '../loop/index.ts';
import { idOf, isBusy, isStoreUnavailable, untilWritten } from '../records/index.ts';
import { SeenElsewhere } from './elsewhere.ts';
import { Intake, type IntakeDependencies, type IntakeResult } from './intake.ts';
import { type Acceptance, hostOf, judge } from './judge.ts';
import { havingKeys, type KeptMachine, keysOfMachine, lineKey, rackKey } from './kept.ts';
import { markLine, markTaken } from './lines.ts';
import { noteReason, removeMachine, seedFacts } from './listing.ts';
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
  type ListedDiscovery,
  SnapshotReader,
} from './snapshot.ts';

export interface DiscoveryDependencies extends IntakeDependencies {
  readonly fleetView: HostFinder;
  /** The longest pause between two passes over everything. */
  readonly resyncIntervalMs: number;
  /** Records acceptances without a person; absent: they are not recorded. */
  readonly audit?: Pick<AuditTrail, 'keepOnce'>;
  /** CreateHost, with all its checks and reservations. */
  readonly createHost: (request: CreateHostRequest, from: AcceptedFrom) => Promise<Host>;
}

/** Boots of unknown machines that an agent runs at once, and starts in an hour. */
const bootsMax = 64;
const bootsPerHourMax = 512;
const resyncMsMin = 10_000;
/** Machines or lines that are read from the store and the view at once. */
const readsAtOnce = 32;

export class Discovery {
  readonly #deps: DiscoveryDependencies;
  readonly #reader: SnapshotReader;
  /** Keys (`kept.ts`) of machines and lines that are due for a pass; undefined: all. */
  #due: Set<string> | undefined = new Set();
  /** The listed machines at the last pass. */
  #listed: ListedDiscovery | undefined;
  readonly #elsewhere = new SeenElsewhere();
  readonly #intake: Intake;
  /** D3: one worker for all discovered machines. */
  readonly #controller: Controller<'machines'>;

  constructor(deps: DiscoveryDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      retryDelayMs: resyncMsMin,
      keyOf: String,
      fieldsOf: (discovered) => ({ discovered }),
      pass: () => this.#judgeDue(),
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

  /** Machines of a rack ("racks/r1") that are listed and not accepted, at the last pass. */
  listedIn(rack: RackName): number {
    return this.#listed?.machines.countBy(rackKey(rack)) ?? 0;
  }

  /** Remarks on a rack's discovery for people, a line each; from the last pass. */
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

  /** How the rack's agent handles unknown machines. */
  policyFor(
    record: wire.RackRecord | undefined,
  ): Omit<agent.Discovery, '$typeName' | 'generation'> {
    const policy = record?.rack?.spec?.discovery;
    const enabled = policy?.enabled === true;
    // Also while the list is full: only a boot shows whether a machine is expected.
    return { enabled, bootsMax: enabled ? bootsMax : 0, bootsPerHourMax };
  }

  /**
   * Something that a machine may have waited for has changed: the machines and lines with one of
   * these keys (`kept.ts`) are examined soon; undefined: all.
   */
  wake(keys?: readonly string[]): void {
    if (keys === undefined) this.#due = undefined;
    else for (const key of keys) this.#due?.add(key);
    this.#controller.wake('machines', 'due');
  }

  /** The policy of a rack, "racks/RACK", has changed: its machines are examined soon. */
  wakeRack(rack: RackName): void {
    this.wake([rackKey(rack)]);
  }

  /** Processes a finding of a rack's agent. */
  report(rackId: RackId, finding: agent.Discovered): Promise<IntakeResult> {
    return this.#queue(() => this.#takeIn(`racks/${rackId}`, finding));
  }

  /** Makes the machine a host at a person's request. Rejects as CreateHost does. */
  accept(
    id: MachineId,
    acceptance: Acceptance & {
      readonly requestId: RequestId;
      readonly actor: Actor;
      /** Revision of the listing that the person saw; undefined: any. */
      readonly seenRevision?: StoreRevision | undefined;
      /** Rejects when the person may not create a host with this spec. */
      readonly check?: (spec: HostSpec) => Promise<void>;
    },
    validateOnly: boolean,
  ): Promise<Host | undefined> {
    return this.#queue(async () => {
      const found = await this.#reader.readOne(id);
      if (found === undefined) return undefined;
      const { kept, hosts } = found;
      const { seenRevision } = acceptance;
      if (seenRevision !== undefined && seenRevision !== kept.revision) throw changedSince(kept);
      const known = hostOf(kept, hosts);
      if (known !== undefined) {
        throw failedPrecondition('IS_A_HOST', `${kept.machine.name}: ${known.text}.`);
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

  async #takeIn(rack: RackName, finding: agent.Discovered): Promise<IntakeResult> {
    const problem = problemOf(finding);
    if (problem !== undefined) {
      return { kind: 'refused', cause: agent.DiscoveryRefusalKind.INVALID, text: problem };
    }
    const seen = this.#intake.seen(rack, finding);
    const keys = new Set(keysOfMachine(seen));
    const verdict = await untilWritten(`a discovered machine of ${rack}`, async () => {
      const snapshot = await this.#reader.read({ machines: [seen], lines: [] });
      // Machines that were similar to it before are affected, too.
      for (const near of snapshot.machines) for (const key of keysOfMachine(near)) keys.add(key);
      const ofRack = () => this.#snapshotOf(rack);
      const decided = await this.#intake.takeIn(seen, { snapshot, ofRack });
      return decided.kind === 'lost' ? undefined : decided;
    });
    switch (verdict.kind) {
      case 'listed':
      case 'known':
        await this.#judge(keys);
        break;
      case 'refused':
        break;
    }
    return verdict;
  }

  async #snapshotOf(rack: RackName): Promise<DiscoverySnapshot> {
    const { machines } = await this.#reader.listed();
    return await this.#reader.read({
      machines: havingKeys(machines, [rackKey(rack)]),
      lines: [],
    });
  }

  async #judgeDue(): Promise<void> {
    const due = this.#due;
    this.#due = new Set();
    try {
      await this.#judge(due);
    } catch (error) {
      if (due === undefined) this.#due = undefined;
      else for (const key of due) this.#due?.add(key);
      throw error;
    }
  }

  /** D1: examines everything with one of these keys; undefined: everything. */
  async #judge(keys: ReadonlySet<string> | undefined): Promise<void> {
    const touched = new Set(keys);
    const { machines } = await this.#noteListed();
    for (const some of groups(havingKeys(machines, keys))) {
      for (const key of some.flatMap(keysOfMachine)) touched.add(key);
      if (!(await this.#judgeSome(some))) return;
    }
    const { lines } = await this.#noteListed();
    for (const some of groups(havingKeys(lines, keys && touched))) {
      if (this.#controller.signal.aborted) return;
      const snapshot = await this.#reader.read({ machines: [], lines: some });
      await markTaken(this.#deps, some, snapshot);
    }
  }

  async #noteListed(): Promise<ListedDiscovery> {
    this.#listed = await this.#reader.listed();
    return this.#listed;
  }

  /** False: stopped. */
  async #judgeSome(machines: readonly KeptMachine[]): Promise<boolean> {
    let snapshot: DiscoverySnapshot | undefined;
    for (const { id } of machines) {
      if (this.#controller.signal.aborted) return false;
      snapshot ??= await this.#reader.read({ machines, lines: [] });
      const kept = snapshot.machines.find((each) => each.id === id);
      if (kept === undefined) continue;
      // A new host affects the next decision: by its name, and by the bound of its rule.
      if (await this.#decide(kept, snapshot)) snapshot = undefined;
    }
    return true;
  }

  /** Whether the machine is no longer listed. */
  async #decide(kept: KeptMachine, snapshot: DiscoverySnapshot): Promise<boolean> {
    if (!snapshot.racks.has(kept.machine.rack)) {
      await removeMachine(this.#deps, kept);
      return true;
    }
    const decision = judge(kept, snapshot);
    switch (decision.kind) {
      case 'host':
        await this.#record(kept, decision.host, acceptedBy(kept, decision.host, snapshot));
        await seedFacts(this.#deps, decision.host, kept.machine);
        await removeMachine(this.#deps, kept);
        return true;
      case 'wait':
        await noteReason(this.#deps, kept, decision.text, snapshot);
        return false;
      case 'accept':
        return await this.#acceptBySystem(kept, decision.acceptance, snapshot);
    }
  }

  async #acceptBySystem(
    kept: KeptMachine,
    acceptance: Acceptance,
    snapshot: DiscoverySnapshot,
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
      // A temporary failure is not shown to people at the machine.
      if (!(error instanceof ApiFailure) || isStoreUnavailable(error) || isBusy(error)) throw error;
      await noteReason(
        this.#deps,
        kept,
        `${by} fits, but it cannot be made a host: ${error.message}`,
        snapshot,
      );
      return false;
    }
  }

  /**
   * Records an acceptance without a person. It may be repeated after a crash and is recorded once.
   */
  async #record(
    kept: KeptMachine,
    { name, uid }: Pick<KnownHost, 'name' | 'uid'>,
    by: string | undefined,
  ): Promise<void> {
    if (by === undefined) return;
    await this.#deps.audit?.keepOnce(acceptanceEvent(kept, name, by), `accepted-${uid}`);
  }

  /** D2: the writes after the host was created. */
  async #settle(kept: KeptMachine, host: Host, expectedUid: string | undefined): Promise<void> {
    const hostId = idOf(host.name);
    await seedFacts(this.#deps, { hostId, uid: host.uid, hasInventory: false }, kept.machine);
    if (expectedUid !== undefined) await markLine(this.#deps, hostId, expectedUid, host.name);
    await removeMachine(this.#deps, kept);
  }
}

function groups<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / readsAtOnce);
  return Array.from({ length: count }, (_, at) =>
    all.slice(at * readsAtOnce, (at + 1) * readsAtOnce),
  );
}

function changedSince({ machine: { name, rack, bootMac, bmcAddress } }: KeptMachine): ApiFailure {
  const bmc = bmcAddress === '' ? 'nothing of its BMC' : `its BMC is ${bmcAddress}`;
  const now = `it is in ${rack}, booted from ${bootMac} and says ${bmc}`;
  const text = `${name} was seen again since it was looked at: ${now}. Look and decide again.`;
  return aborted('ETAG_MISMATCH', text);
}
