/**
 * One session with a rack's agent, from its Hello to its end, without sockets: messages in,
 * messages out.
 *
 * Invariants:
 * 1. Nothing is believed before Hello, and nothing is sent before Welcome.
 * 2. A second agent of a rack whose session lives is refused and shown (R6).
 * 3. The work lease is renewed only after this replica's own access to the store (R11).
 * 4. A final report is answered once what it changed is durable (R7).
 *
 * Must not: decide anything about a host; `Hosts` does.
 */
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent, type RackStatus, RackStatusSchema, store as wire } from '@rackwright/api';
import type { Clock, CrashPoint, Log, Random } from '@rackwright/platform';
import { randomId } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import {
  descends,
  fleetKey,
  type Hosts,
  isSameLife,
  lifeOf,
  offered,
  rackIdOf,
  settleMs,
  whyNothingDestructive,
} from '../host/index.ts';
import { isAway, readRecord, sharedRecordOf, writeRecord } from '../records/index.ts';
import { directiveFor, obstructsRemoval } from './directives.ts';
import { Discoveries, type DiscoveriesDependencies } from './discoveries.ts';
import { hintIntervalMs, rivalElsewhere, whyOver } from './elsewhere.ts';
import { Forgetting } from './forgetting.ts';
import { foldHello } from './hello-folds.ts';
import { bootHost } from './messages.ts';
import { PowerSyncs } from './power-sync.ts';
import type { LiveSession, SessionRegistry } from './registry.ts';
import { answerOf, Settlement } from './settlement.ts';
import type { StepLogs } from './step-logs.ts';
import { foldStoreGuard, guardedDirectives, isGuarded, lostSoFar } from './store-guard.ts';
import type { SessionTiming } from './timing.ts';

export interface SessionDependencies extends Pick<DiscoveriesDependencies, 'discovery'> {
  readonly store: StateStore;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly registry: SessionRegistry;
  readonly hosts: Hosts;
  readonly timing: SessionTiming;
  /** Takes what steps' programs write; without it that is left out. */
  readonly stepLogs?: StepLogs;
  /** As in `HostsDependencies`. */
  readonly replicaId: string;
}

/** Steps of an agent that are kept. */
const agentStepsMax = 64;
/** Pause before a boot snapshot that could not be made is tried again. */
const snapshotRetryMs = 1_000;
/** Longest reason of a freeze that goes out with each renewal, in characters. */
const frozenCharsMax = 500;

export interface SessionSink {
  send(message: agent.SessionResponse['message']): void;
  /** Ends the stream after what was sent. */
  end(): void;
}

export class RackSession {
  readonly #deps: SessionDependencies;
  readonly #rackId: string;
  readonly #sink: SessionSink;
  readonly #settlement = new Settlement();
  readonly #awaited = new Set<string>();
  readonly #forgetting: Forgetting;
  /** Hosts removed by force that the agent had not forgotten at its Hello. */
  #tombstones: readonly string[] = [];
  #live: LiveSession | undefined;
  #lastMessageMs = 0;
  #snapshot: agent.BootSnapshot | undefined;
  #snapshotting: Promise<void> = Promise.resolve();
  readonly #powerSyncs: PowerSyncs;
  readonly #discoveries: Discoveries;
  /** The rack's registered key when the session began. */
  #key: Uint8Array = new Uint8Array();
  #hintedMs = 0;
  /** The store has lost something, and the agent does not know yet that this was accepted. */
  #guarded = false;
  #lostRevisions = 0n;
  /** Why the session of another replica goes before this one (R6). */
  #elsewhere: string | undefined;
  /** The stream has ended. */
  #over = false;

  constructor(deps: SessionDependencies, rackId: string, sink: SessionSink) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#sink = sink;
    this.#forgetting = new Forgetting(deps, rackId);
    this.#powerSyncs = new PowerSyncs(deps, rackId, (message) => sink.send(message));
    this.#discoveries = new Discoveries(deps, rackId, (message) => sink.send(message));
  }

  get rackId(): string {
    return this.#rackId;
  }

  /** Takes one message. Resolves when what must precede the next message has been done. */
  async receive(request: agent.SessionRequest): Promise<void> {
    const { message } = request;
    if (this.#live !== undefined && !this.#stands()) {
      this.#sink.end();
      return;
    }
    const silentMs = this.#deps.clock.nowMs() - this.#lastMessageMs;
    this.#lastMessageMs += silentMs;
    if (this.#live === undefined) {
      if (message.case === 'hello') await this.#welcome(message.value);
      else this.#refuse('badHello', 'the first message of a session must be Hello');
      return;
    }
    // Deadlines that passed meanwhile could not fire (R5).
    if (silentMs >= settleMs) this.#deps.hosts.wakeRack(this.#rackId);
    switch (message.case) {
      case 'heartbeat':
        await this.#renewLease(message.value);
        return;
      case 'report':
        this.#fold(message.value);
        return;
      case 'hostForgotten':
        await this.#forgotten(message.value.hostUid);
        return;
      case 'powerDigest':
        void this.#powerSyncs.digest(message.value).catch((error: unknown) => {
          this.#breakOff({ operationId: '' }, error);
        });
        return;
      case 'discovered':
        void this.#discoveries.found(message.value);
        return;
      case 'stepLog': {
        // A rack speaks for its own hosts only.
        const { hosts, stepLogs } = this.#deps;
        if (hosts.hostIdOfUid(message.value.hostUid, this.#rackId) === undefined) return;
        stepLogs?.take(message.value);
        return;
      }
      case 'snapshotApplied':
        return;
      default:
        this.#deps.log.warn({ rack: this.#rackId, message: message.case }, 'unexpected message');
    }
  }

  /** Whether this session is still the rack's; a replaced one has no powers left (R6). */
  #stands(): boolean {
    return this.#deps.registry.sessionOf(this.#rackId) === this.#live;
  }

  /** The stream is over, for whatever reason. */
  closed(): void {
    this.#over = true;
    if (this.#live === undefined) return;
    this.#deps.log.info({ rack: this.#rackId }, 'agent session ended');
    const stood = this.#deps.registry.sessionOf(this.#rackId) === this.#live;
    this.#deps.registry.close(this.#live);
    this.#live = undefined;
    if (stood) void this.#withdrawHint();
  }

  /** So that every replica may say that the agent is away. */
  async #withdrawHint(): Promise<void> {
    const { log, replicaId, registry } = this.#deps;
    try {
      await this.#updateRack((record, status) => {
        status.lastSeenTime = timestampFromMs(this.#lastMessageMs);
        const replaced = registry.sessionOf(this.#rackId) !== undefined;
        if (record.sessionReplica === replicaId && !replaced) record.sessionReplica = '';
      });
    } catch (error) {
      log.warn({ rack: this.#rackId, error: String(error) }, 'the session hint stays');
    }
  }

  #refuse(reason: string, message: string): void {
    this.#deps.log.warn({ rack: this.#rackId, reason }, message);
    this.#sink.send({ case: 'refused', value: create(agent.RefusedSchema, { reason, message }) });
    this.#sink.end();
  }

  async #welcome(hello: agent.Hello): Promise<void> {
    const { journal } = hello;
    if (journal === undefined || journal.id === '') {
      this.#refuse('badHello', 'Hello must name its journal and generation');
      return;
    }
    if (await this.#yields(journal)) return;
    if (!(await this.#recordHello(hello, journal))) {
      this.#refuse('unknownRack', `the rack ${this.#rackId} does not exist`);
      return;
    }
    if (this.#elsewhere !== undefined) return this.#refuse('duplicateAgent', this.#elsewhere);
    const live = this.#liveSession(journal, hello.operationKinds);
    await this.#sendWelcome(hello, journal);
    await this.sendSnapshot();
    // Meanwhile the stream may have ended, or a newer session of the rack have opened.
    if (this.#over) return this.#withdrawHint();
    if (this.#rival(journal) !== undefined && (await this.#yields(journal))) return;
    this.#live = live;
    this.#deps.log.info({ rack: this.#rackId, agentVersion: hello.agentVersion }, 'agent session');
    // Queued before anything that the opening wakes, so that no deadline fires on old knowledge.
    const folded = this.#reconcile(hello);
    this.#deps.registry.open(live);
    await folded;
    void this.sendPowerSync();
  }

  /** Refuses an agent that must not replace the session that stands, and shows it. */
  async #yields(journal: agent.Journal): Promise<boolean> {
    const rival = this.#rival(journal);
    if (rival === undefined) return false;
    await this.#updateRack((_record, status) => {
      status.duplicateAgent = rival;
    });
    this.#refuse('duplicateAgent', rival);
    return true;
  }

  /** R6: why this agent must not replace the session that stands, or undefined. */
  #rival(journal: agent.Journal): string | undefined {
    const standing = this.#deps.registry.sessionOf(this.#rackId);
    if (standing === undefined) return undefined;
    const { clock, timing } = this.#deps;
    if (standing.lastMessageMs() + timing.leaseDurationMs <= clock.nowMs()) return undefined;
    const newer = descends(journal, standing.journal) && !isSameLife(journal, standing.journal);
    if (newer) return undefined;
    return (
      `another agent of rack ${this.#rackId} is connected (journal ${standing.journal.id}, ` +
      `generation ${standing.journal.generation}); stop one of the two`
    );
  }

  #liveSession(journal: agent.Journal, operationKinds: readonly string[]): LiveSession {
    return {
      rackId: this.#rackId,
      journal,
      operationKinds,
      lastMessageMs: () => this.#lastMessageMs,
      awaitsReport: (operationId) => this.#awaited.has(operationId),
      send: (message) => this.#sink.send(message),
      end: () => this.#sink.end(),
    };
  }

  async #recordHello(hello: agent.Hello, journal: agent.Journal): Promise<boolean> {
    const { store, hosts, clock } = this.#deps;
    const { incarnation } = store;
    const position = { incarnation, revision: BigInt(await store.latestRevision()) };
    const hostName = (uid: string) => `hosts/${hosts.hostIdOfUid(uid, this.#rackId) ?? uid}`;
    return this.#updateRack((record, status) => {
      this.#elsewhere = rivalElsewhere(record, journal, this.#deps);
      status.duplicateAgent = this.#elsewhere ?? '';
      if (this.#elsewhere !== undefined) return;
      foldStoreGuard(record, status, hello, position, clock.nowMs(), hostName);
      this.#guarded = isGuarded(record);
      this.#lostRevisions = lostSoFar(record);
      record.journal = lifeOf(journal);
      status.agentVersion = hello.agentVersion;
      record.agentSteps = offered(hello.steps).slice(0, agentStepsMax);
      status.lastSeenTime = timestampFromMs(this.#deps.clock.nowMs());
      this.#key = record.agentPublicKey;
      this.#tombstones = [...record.tombstones];
      this.#hint(record);
    });
  }

  /** False when the rack does not exist. */
  async #updateRack(
    change: (record: wire.RackRecord, status: RackStatus) => void,
  ): Promise<boolean> {
    const key = storeKey('racks', this.#rackId);
    for (let round = 0; round < 8; round++) {
      const kept = await readRecord(this.#deps.store, wire.RackRecordSchema, key);
      if (kept?.record.rack === undefined) return false;
      const record = clone(wire.RackRecordSchema, kept.record);
      if (record.rack === undefined) return false;
      record.rack.status ??= create(RackStatusSchema);
      change(record, record.rack.status);
      if (equals(wire.RackRecordSchema, kept.record, record)) return true;
      const written = await writeRecord(
        this.#deps,
        wire.RackRecordSchema,
        key,
        record,
        kept.revision,
      );
      if (written.kind === 'ok') return true;
    }
    throw new Error(`rack ${this.#rackId}: lost 8 compare-and-sets in a row`);
  }

  async #sendWelcome(hello: agent.Hello, journal: agent.Journal): Promise<void> {
    const { store, hosts, timing, random } = this.#deps;
    const directives = this.#guarded ? guardedDirectives(hello.operations) : [];
    for (const operation of hello.operations) {
      const hostId = hosts.hostIdOfUid(operation.hostUid, this.#rackId);
      const kept =
        hostId === undefined
          ? undefined
          : await readRecord(store, wire.HostRecordSchema, storeKey('hosts', hostId));
      if (!this.#guarded || obstructsRemoval(operation, kept?.record)) {
        directives.push(directiveFor(operation, kept?.record, journal));
      }
      if (operation.state === agent.JournalledOperation_State.ENDED && !operation.answered) {
        this.#awaited.add(operation.operationId);
      }
    }
    this.#sink.send({
      case: 'welcome',
      value: create(agent.WelcomeSchema, {
        sessionId: randomId(random),
        incarnation: store.incarnation,
        revision: BigInt(await store.latestRevision()),
        heartbeatIntervalMs: timing.heartbeatIntervalMs,
        directives,
        forgetHostUids: this.#forgetting.due(this.#tombstones, this.#deps.clock.nowMs()),
        lostRevisions: this.#lostRevisions,
      }),
    });
  }

  /** R10: each host of the rack learns what the agent knows of it. */
  async #reconcile(hello: agent.Hello): Promise<void> {
    const folded = await foldHello(this.#deps, this.#rackId, hello, () => this.#stands());
    // What only Hello can tell would be missing until the next one.
    if (folded === 'storeAway') this.#sink.end();
  }

  async #renewLease(heartbeat: agent.Heartbeat): Promise<void> {
    const { store, timing, replicaId } = this.#deps;
    const key = storeKey('racks', this.#rackId);
    // Read anew for each renewal: a freeze that was written before it is in it (R11).
    const [rack, fleet, revision] = await Promise.all([
      readRecord(store, wire.RackRecordSchema, key),
      readRecord(store, wire.FleetRecordSchema, fleetKey),
      store.latestRevision(),
    ]);
    const journal = this.#stands() ? this.#live?.journal : undefined;
    const over = whyOver(rack?.record, { journal, key: this.#key, replicaId });
    if (over !== undefined) {
      this.#deps.log.warn({ rack: this.#rackId, reason: over }, 'the session is not the rack’s');
      this.#sink.end();
      return;
    }
    this.#sink.send({
      case: 'leaseRenewal',
      value: create(agent.LeaseRenewalSchema, {
        heartbeatSequence: heartbeat.sequence,
        durationMs: timing.leaseDurationMs,
        revision: BigInt(revision),
        frozen: whyNothingDestructive(rack?.record, fleet?.record).slice(0, frozenCharsMax),
      }),
    });
    if (rack?.record.acceptedStore !== undefined) {
      const lostRevisions = lostSoFar(rack.record);
      const value = { ...rack.record.acceptedStore, lostRevisions };
      this.#sink.send({ case: 'storeAccepted', value });
    }
    this.#powerSyncs.heard(rack?.record, revision);
    this.#discoveries.heard(rack?.record, revision);
    this.#askToForget(rack?.record.tombstones ?? []);
    await this.#renewHint();
  }

  /** Another replica may have removed a host by force, and a push may have been lost. */
  #askToForget(tombstones: readonly string[]): void {
    for (const hostUid of this.#forgetting.due(tombstones, this.#deps.clock.nowMs())) {
      this.#sink.send({ case: 'forget', value: create(agent.ForgetSchema, { hostUid }) });
    }
  }

  #hint(record: wire.RackRecord): void {
    const nowMs = this.#deps.clock.nowMs();
    record.sessionReplica = this.#deps.replicaId;
    record.sessionTime = timestampFromMs(nowMs);
    this.#hintedMs = nowMs;
  }

  /** Other replicas believe the hint only for a while. */
  async #renewHint(): Promise<void> {
    if (this.#deps.clock.nowMs() - this.#hintedMs < hintIntervalMs) return;
    await this.#updateRack((record) => this.#hint(record));
  }

  /**
   * Reports of one host are folded in order; those of several hosts need not wait for each other.
   */
  #fold(report: agent.Report): void {
    const { hosts, crashPoint } = this.#deps;
    if (report.sequence > 0n) this.#settlement.received(report.sequence);
    const hostId = hosts.hostIdOfUid(report.hostUid, this.#rackId);
    const folding =
      hostId === undefined
        ? Promise.resolve({ kind: 'notFound' as const })
        : hosts.report(hostId, report);
    folding
      .then((result) => {
        this.#awaited.delete(report.operationId);
        if (report.sequence === 0n) return;
        if (hostId !== undefined) {
          this.#deps.stepLogs?.ended(report.hostUid, report.operationId);
        }
        const settledUpTo = this.#settlement.answered(report.sequence);
        this.#sink.send({ case: 'reportAnswer', value: answerOf(report, result, settledUpTo) });
        crashPoint('cp.reportAcknowledged');
      })
      .catch((error: unknown) => this.#couldNotFold(report, hostId, error))
      .catch((error: unknown) => this.#breakOff(report, error));
  }

  /** Left unanswered: the agent brings it again in its next session. */
  #breakOff({ operationId }: Pick<agent.Report, 'operationId'>, error: unknown): void {
    const fields = { rack: this.#rackId, operation: operationId, error: textOf(error) };
    this.#deps.log.warn(fields, 'a report could not be folded in; it will come again');
    this.#sink.end();
  }

  /**
   * A store that is away leaves the report unanswered. What no repetition can mend ends the attempt
   * instead, or it would come back for ever and take the rack with it; facts are dropped.
   */
  async #couldNotFold(
    report: agent.Report,
    hostId: string | undefined,
    error: unknown,
  ): Promise<void> {
    const { log, hosts } = this.#deps;
    if (isAway(error) || hostId === undefined) throw error;
    const fields = { rack: this.#rackId, operation: report.operationId, error: textOf(error) };
    log.error(fields, 'a report cannot be folded in');
    if (report.operationId === '') return;
    const message = `the result could not be taken in: ${textOf(error).slice(0, 500)}`;
    const { operationId: id, hostUid } = report;
    const result = await hosts.fail(hostId, { id, hostUid }, 'internal', message);
    const settledUpTo = this.#settlement.answered(report.sequence);
    this.#sink.send({ case: 'reportAnswer', value: answerOf(report, result, settledUpTo) });
  }

  async #forgotten(hostUid: string): Promise<void> {
    const hostId = this.#deps.hosts.hostIdOfUid(hostUid, this.#rackId);
    if (hostId !== undefined) await this.#deps.hosts.forgotten(hostId);
    await this.#forgetting.confirmed(hostUid);
  }

  /** What the agent shall look at by itself, once it is welcome. */
  async sendPowerSync(): Promise<void> {
    if (this.#live !== undefined && this.#stands()) await this.#powerSyncs.refresh();
  }

  /** One after another, so that an older list is never sent after a newer one. */
  sendSnapshot(): Promise<void> {
    this.#snapshotting = this.#snapshotting
      .then(() => this.#sendSnapshot())
      .catch((error: unknown) => {
        const { clock, log } = this.#deps;
        log.warn({ rack: this.#rackId, error: String(error) }, 'no boot snapshot; tried again');
        clock.after(snapshotRetryMs, () => void this.sendSnapshot());
      });
    return this.#snapshotting;
  }

  /** Sends what the boot path must know of the rack's hosts, if it differs from the last time. */
  async #sendSnapshot(): Promise<void> {
    const { store } = this.#deps;
    const { entries, before } = await store.list('hosts');
    const records = entries.map((each) => sharedRecordOf(store, wire.HostRecordSchema, each));
    const hosts = records
      .filter((record) => rackIdOf(record) === this.#rackId && !record.forgetting)
      .map((record) => bootHost(record));
    const snapshot = create(agent.BootSnapshotSchema, { generation: BigInt(before), hosts });
    const last = this.#snapshot;
    if (last !== undefined) {
      const same = create(agent.BootSnapshotSchema, { ...last, generation: BigInt(before) });
      if (equals(agent.BootSnapshotSchema, same, snapshot)) return;
    }
    this.#snapshot = snapshot;
    this.#sink.send({ case: 'bootSnapshot', value: snapshot });
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
