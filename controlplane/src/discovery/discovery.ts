/**
 * Machines that netbooted and are no hosts: taken in as racks' agents tell of them, matched with
 * the manifest and the rules of their rack, made hosts.
 *
 * D1 By level: whatever was missed (a crash, another replica, a rule that came later) is found when
 *    everything is looked at again, which happens after each change here and at intervals.
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
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  aborted,
  agent,
  type CreateHostRequest,
  type DiscoveredMachine,
  DiscoveredMachineSchema,
  type ExpectedHost,
  ExpectedHostSchema,
  failedPrecondition,
  type Host,
  type HostSpec,
  type Rack,
  store as wire,
} from '@rackwright/api';
import { type Cancel, type Clock, type Log, type Random, randomId } from '@rackwright/platform';
import { type Revision, type StateStore, storeKey } from '@rackwright/store';
import type { AuditTrail } from '../audit/index.ts';
import { deleteRecord, readRecord, writeRecord } from '../records/index.ts';
import { SeenElsewhere } from './elsewhere.ts';
import { type Acceptance, bounded, conflictOf, hostOf, isKnownBoot, judge } from './judge.ts';
import { twinsOf } from './lookup.ts';
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
import { freeIdentity, leastWanted, machinesMaxOf } from './room.ts';
import { isSameMachine, traitsOf, unicastMac } from './traits.ts';
import { type KeptMachine, type KnownHost, type World, WorldReader } from './world.ts';

export interface DiscoveryDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Everything is looked at again after this at the latest. */
  readonly resyncIntervalMs: number;
  /** Where acceptances that no person asked for are recorded; absent: nowhere. */
  readonly audit?: Pick<AuditTrail, 'keepOnce'>;
  /** CreateHost, with all its checks and reservations. */
  readonly createHost: (request: CreateHostRequest, from: AcceptedFrom) => Promise<Host>;
  /** Folds what was seen of a host. */
  readonly reportHost: (hostId: string, report: agent.Report) => Promise<unknown>;
}

/** Boots of unknown machines that an agent has under way at once, and lets begin in an hour. */
const bootsMax = 64;
const bootsPerHourMax = 512;
/** Compare-and-sets that one change may lose. */
const roundsMax = 8;
const resyncMsMin = 10_000;

export class Discovery {
  readonly #deps: DiscoveryDependencies;
  readonly #reader: WorldReader;
  /** Machines listed, by the name of their rack, as of the last look. */
  #listed = new Map<string, number>();
  readonly #elsewhere = new SeenElsewhere();
  #last: Promise<unknown> = Promise.resolve();
  #lookWaits = false;
  #stopped = false;
  #cancelResync: Cancel = () => {};

  constructor(deps: DiscoveryDependencies) {
    this.#deps = deps;
    this.#reader = new WorldReader(deps.store);
  }

  start(): void {
    this.wake();
    this.#resyncLater();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelResync();
  }

  /** Machines of a rack ("racks/r1") that are listed and not accepted, as of the last look. */
  listedIn(rack: string): number {
    return this.#listed.get(rack) ?? 0;
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

  /** Something has changed that a machine may have waited for: everything is looked at soon. */
  wake(): void {
    if (this.#lookWaits || this.#stopped) return;
    this.#lookWaits = true;
    this.#queue(() => {
      this.#lookWaits = false;
      return this.#lookAtAll();
    }).catch((error: unknown) => {
      this.#deps.log.warn({ error: String(error) }, 'discovered machines: looked at again later');
    });
  }

  /** Takes in a finding of a rack's agent. Resolves with why it is not listed; empty: it is. */
  report(rackId: string, finding: agent.Discovered): Promise<string> {
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
      const { machines, hosts } = await this.#reader.read();
      const kept = machines.find((each) => each.id === id);
      if (kept === undefined) return undefined;
      const { lookedAt } = acceptance;
      if (lookedAt !== undefined && lookedAt !== kept.revision) throw changedSince(kept);
      const known = hostOf(kept, hosts);
      if (known !== undefined) {
        throw failedPrecondition('IS_A_HOST', `${kept.machine.name}: ${known.words}.`);
      }
      const { requestId, actor } = acceptance;
      const cause = `accepted by ${acceptance.by}: ${kept.machine.name}`;
      const from = fromOf(kept, { actor, cause });
      const request = creationOf(kept, acceptance, requestId, validateOnly);
      if (request.host?.spec !== undefined) await acceptance.check?.(request.host.spec);
      const host = await this.#deps.createHost(request, from);
      if (!validateOnly) await this.#settle(kept, host, undefined);
      return host;
    });
  }

  #resyncLater(): void {
    const { clock, resyncIntervalMs } = this.#deps;
    this.#cancelResync = clock.after(Math.max(resyncIntervalMs, resyncMsMin), () => {
      this.wake();
      this.#resyncLater();
    });
  }

  /** D3 */
  #queue<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(act);
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  async #takeIn(rack: string, finding: agent.Discovered): Promise<string> {
    const problem = problemOf(finding);
    if (problem !== undefined) return problem;
    for (let round = 0; round < roundsMax; round += 1) {
      const world = await this.#reader.read();
      const answer = await this.#takeInOnce(rack, finding, world);
      if (answer === undefined) continue;
      if (answer === '') await this.#lookAtAll();
      return answer;
    }
    throw new Error(`a discovered machine of ${rack} changes all the time`);
  }

  /** Undefined: something was written meanwhile. */
  async #takeInOnce(
    rack: string,
    finding: agent.Discovered,
    world: World,
  ): Promise<string | undefined> {
    const fresh = this.#machineOf(rack, finding);
    const traits = traitsOf(fresh.inventory, fresh.bootMac);
    const seen: KeptMachine = { id: '', machine: fresh, traits, revision: 0 };
    const known = hostOf(seen, world.hosts);
    if (known !== undefined) {
      await this.#tellHost(known.host, known.words, fresh);
      if (isKnownBoot(fresh, known.host)) return '';
      return known.host.rack === rack ? known.words : 'it says that it is a host of another rack';
    }
    const sameMachines = world.machines.filter((each) => isSameMachine(each.traits, traits));
    const before = sameMachines.find(({ machine }) => machine.rack === rack);
    if (before !== undefined) return await this.#seenAgain(before, fresh);
    for (const { machine } of sameMachines) this.#noteElsewhere(machine, fresh);
    const policy = world.racks.get(rack)?.spec?.discovery;
    const listed = world.machines.filter(({ machine }) => machine.rack === rack).length;
    const most = machinesMaxOf(policy);
    if (policy?.enabled !== true) return `${rack} takes in no machines that nobody knows`;
    const room = listed < most ? 'made' : await this.#makeRoom(seen, world);
    if (room === 'changed') return undefined;
    if (room === 'none') return `${rack} lists ${listed} machines already, of ${most}: accept some`;
    const identity = freeIdentity(seen, world);
    if (identity === undefined) return 'nothing tells it from machines that are listed already';
    const { clock, log } = this.#deps;
    const machine = clone(DiscoveredMachineSchema, fresh);
    machine.name = `discoveredMachines/${identity.id}`;
    machine.identifiedBy = identity.by;
    machine.firstSeenTime = timestampFromMs(clock.nowMs());
    const written = await this.#write(identity.id, machine, 'absent');
    if (!written) return undefined;
    log.info({ machine: machine.name, rack, mac: machine.bootMac }, 'a machine was discovered');
    return '';
  }

  /** D4; `changed`: what was to go was seen again, or went, meanwhile. */
  async #makeRoom(seen: KeptMachine, world: World): Promise<'made' | 'none' | 'changed'> {
    const decision = judge(seen, world);
    if (decision.kind === 'wait' && !decision.fits) return 'none';
    const goes = leastWanted(seen.machine.rack, world, decision.kind === 'accept');
    if (goes === undefined) return 'none';
    if (!(await this.#remove(goes))) return 'changed';
    this.#deps.log.info({ machine: goes.machine.name }, 'dropped from a full list for another one');
    return 'made';
  }

  #machineOf(rack: string, finding: agent.Discovered): DiscoveredMachine {
    const { clock, random } = this.#deps;
    const { bootMac, inventory, bmcAddress } = finding;
    return create(DiscoveredMachineSchema, {
      uid: randomId(random),
      rack,
      lastSeenTime: timestampFromMs(clock.nowMs()),
      bootMac: unicastMac(bootMac) ?? '',
      ...(inventory === undefined ? {} : { inventory }),
      bmcAddress,
    });
  }

  /** The same machine, listed once: it may have booted from another interface. */
  async #seenAgain(
    { id, machine, revision }: KeptMachine,
    fresh: DiscoveredMachine,
  ): Promise<string | undefined> {
    const next = clone(DiscoveredMachineSchema, machine);
    const { bootMac, inventory, lastSeenTime, bmcAddress } = fresh;
    Object.assign(next, { bootMac, inventory, lastSeenTime });
    if (bmcAddress !== '') next.bmcAddress = bmcAddress;
    return (await this.#write(id, next, revision)) ? '' : undefined;
  }

  /** A host netbooted from an unknown interface, and nobody ordered it. */
  async #tellHost(host: KnownHost, words: string, machine: DiscoveredMachine): Promise<void> {
    if (isKnownBoot(machine, host)) return;
    const { rack, bootMac } = machine;
    this.#deps.log.warn({ host: host.name, rack, mac: bootMac }, words);
    // D5: nor does anything else vouch for it, as UUID and serial stand on a sticker.
    if (host.rack !== rack) {
      this.#noteElsewhere(host, machine);
      return;
    }
    this.#elsewhere.forget(host.name);
    const unexpectedNetboot = create(agent.UnexpectedNetbootSchema, {
      mac: machine.bootMac,
      hostUid: host.uid,
      hostName: host.name,
      ...(machine.lastSeenTime === undefined ? {} : { time: machine.lastSeenTime }),
    });
    const observations = create(agent.ObservationsSchema, { unexpectedNetboot });
    const value = create(agent.HostUpdatedSchema, { observations });
    const result = { case: 'hostUpdated', value } as const;
    const report = create(agent.ReportSchema, { hostUid: host.uid, result });
    await this.#deps.reportHost(host.hostId, report);
  }

  #noteElsewhere(
    { name, rack }: Pick<KnownHost, 'name' | 'rack'>,
    { rack: seenIn, bootMac: mac }: DiscoveredMachine,
  ): void {
    this.#elsewhere.note(name, { rack, seenIn, mac });
  }

  /** D1 */
  async #lookAtAll(): Promise<void> {
    if (await this.#reader.isQuiet()) {
      this.#listed = new Map();
      return;
    }
    let left = await this.#reader.read();
    for (const kept of left.machines) {
      if (this.#stopped) return;
      // What became a host counts for the next one: by its name, and for what a rule may make.
      if (await this.#lookAt(kept, left)) left = await this.#reader.read();
    }
    await this.#markTaken(left);
    const listed = new Map<string, number>();
    for (const { machine } of left.machines) {
      listed.set(machine.rack, (listed.get(machine.rack) ?? 0) + 1);
    }
    this.#listed = listed;
  }

  /** Whether the machine is listed no more. */
  async #lookAt(kept: KeptMachine, world: World): Promise<boolean> {
    if (!world.racks.has(kept.machine.rack)) {
      await this.#remove(kept);
      return true;
    }
    const decision = judge(kept, world);
    switch (decision.kind) {
      case 'host':
        await this.#record(kept, decision.host, acceptedBy(kept, decision.host, world));
        await this.#seed(decision.host, kept.machine);
        await this.#remove(kept);
        return true;
      case 'wait':
        await this.#note(kept, decision.words, world);
        return false;
      case 'accept':
        return await this.#acceptBySystem(kept, decision.acceptance, world);
    }
  }

  async #acceptBySystem(kept: KeptMachine, acceptance: Acceptance, world: World): Promise<boolean> {
    const { expectedUid, by, rule } = acceptance;
    const requestId =
      expectedUid === undefined ? machineRequestId(kept.machine.uid) : lineRequestId(expectedUid);
    const from = fromOf(kept, { actor: discoveryActor, cause: `accepted by ${by}`, rule });
    try {
      const request = creationOf(kept, acceptance, requestId, false);
      const host = await this.#deps.createHost(request, from);
      this.#deps.log.info({ host: host.name, machine: kept.machine.name, by }, 'accepted');
      await this.#record(kept, host, rule ?? by);
      await this.#settle(kept, host, expectedUid);
      return true;
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.error.kind === 'unavailable') throw error;
      await this.#note(kept, `${by} fits, but it cannot be made a host: ${error.message}`, world);
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
    const hostId = host.name.replace('hosts/', '');
    await this.#seed({ hostId, uid: host.uid, hasInventory: false }, kept.machine);
    if (expectedUid !== undefined) await this.#markLine(hostId, expectedUid, host.name);
    await this.#remove(kept);
  }

  /** The host begins with what was found, unless more is known of it already. */
  async #seed(
    { hostId, uid, hasInventory }: Pick<KnownHost, 'hostId' | 'uid' | 'hasInventory'>,
    { inventory }: DiscoveredMachine,
  ): Promise<void> {
    if (hasInventory || inventory === undefined) return;
    const key = storeKey('facts', hostId);
    const schema = wire.HostFactsSchema;
    const kept = await readRecord(this.#deps.store, schema, key);
    const isMine = kept?.record.hostUid === uid;
    if (isMine && kept.record.inventory !== undefined) return;
    const facts = isMine ? clone(schema, kept.record) : create(schema, { hostUid: uid });
    facts.inventory = inventory;
    await writeRecord(this.#deps, schema, key, facts, kept?.revision ?? 'absent');
  }

  /** Lines whose host was made before a crash, and what the others say (R2: if it differs). */
  async #markTaken(world: World): Promise<void> {
    for (const line of world.expected) {
      const { expected, id } = line;
      if (expected.host !== '') continue;
      const host = world.hosts.find(({ hostId }) => hostId === id);
      if (host?.requestIds.includes(`create:${lineRequestId(expected.uid)}`) === true) {
        await this.#markLine(id, expected.uid, host.name);
        continue;
      }
      const conflict = conflictOf(line, world);
      if (conflict === expected.conflict) continue;
      const next = clone(ExpectedHostSchema, expected);
      next.conflict = conflict;
      await this.#writeLine(id, next, line.revision);
    }
  }

  async #markLine(id: string, uid: string, host: string): Promise<void> {
    const { store, clock } = this.#deps;
    for (let round = 0; round < roundsMax; round += 1) {
      const kept = await readRecord(store, wire.ExpectedHostRecordSchema, lineKey(id));
      const line = kept?.record.expectedHost;
      if (kept === undefined || line?.uid !== uid || line.host === host) return;
      const next = clone(ExpectedHostSchema, line);
      next.host = host;
      next.acceptTime = timestampFromMs(clock.nowMs());
      next.conflict = '';
      if (await this.#writeLine(id, next, kept.revision)) return;
    }
  }

  async #writeLine(id: string, expectedHost: ExpectedHost, revision: number): Promise<boolean> {
    const schema = wire.ExpectedHostRecordSchema;
    const kept = await readRecord(this.#deps.store, schema, lineKey(id));
    if (kept?.revision !== revision) return false;
    const record = clone(schema, kept.record);
    record.expectedHost = expectedHost;
    return (await writeRecord(this.#deps, schema, lineKey(id), record, revision)).kind === 'ok';
  }

  async #note(kept: KeptMachine, words: string, world: World): Promise<void> {
    const { id, machine, revision } = kept;
    const next = clone(DiscoveredMachineSchema, machine);
    next.notAccepted = bounded(words);
    // D5: what another rack tells is said of the rack (`remarksOf`), not written here.
    const twins = twinsOf(kept, world.machines).filter((twin) => {
      return twin.machine.rack === machine.rack;
    });
    next.remarks = twins
      .slice(0, roundsMax)
      .map((twin) => `${twin.machine.name} has the same UUID`);
    if (!equals(DiscoveredMachineSchema, next, machine)) await this.#write(id, next, revision);
  }

  async #write(
    id: string,
    machine: DiscoveredMachine,
    revision: number | 'absent',
  ): Promise<boolean> {
    const schema = wire.DiscoveredMachineRecordSchema;
    const record = create(schema, { machine });
    const written = await writeRecord(this.#deps, schema, machineKey(id), record, revision);
    return written.kind === 'ok';
  }

  /** A machine that was seen again meanwhile stays until the next look. */
  async #remove({ id, revision }: KeptMachine): Promise<boolean> {
    return (await deleteRecord(this.#deps, machineKey(id), revision)).kind === 'ok';
  }
}

function machineKey(id: string): string {
  return storeKey('discoveredMachines', id);
}

function lineKey(id: string): string {
  return storeKey('expectedHosts', id);
}

function changedSince({ machine: { name, rack, bootMac, bmcAddress } }: KeptMachine): ApiFailure {
  const bmc = bmcAddress === '' ? 'nothing of its BMC' : `its BMC is ${bmcAddress}`;
  const now = `it is in ${rack}, booted from ${bootMac} and says ${bmc}`;
  const words = `${name} was seen again since it was looked at: ${now}. Look and decide again.`;
  return aborted('ETAG_MISMATCH', words);
}
