/**
 * The shell around the host's state machine: reads the record, calls `decideHost`, writes, then
 * acts. One queue per host, so that its events are folded in one after another.
 *
 * Invariants:
 * 1. Nothing is sent or answered before the record that says so is durable (R3, R7).
 * 2. A record is written only when it differs from the one that was read (R2).
 * 3. A lost compare-and-set repeats the whole decision on the present record.
 * 4. Nothing is kept here that the store cannot rebuild, except the percent of progress.
 */
import {
  type agent,
  type Explanation,
  type FailureName,
  type HostId,
  type HostUid,
  type OperationId,
  type Progress,
  type RackId,
  store as wire,
} from '@rackwright/messages';
import type { Cancel } from '@rackwright/platform';
import { type StoreRevision, storeKey } from '@rackwright/store';
import { Controller, type Lane, type Passes } from '../../loop/index.ts';
import {
  deleteRecord,
  idOf,
  idOfKey,
  readShared,
  sameMessage,
  tooBusy,
  writeShared,
} from '../../records/index.ts';
import { explainHost } from '../explain/explain.ts';
import { HostIndex, rackIdOf } from '../fleet/host-index.ts';
import { noteDisks } from '../fleet/known-disks.ts';
import { releaseEverything, writeIntent } from '../fleet/removal.ts';
import { UsualDurations, type UsualTimes } from '../fleet/usual.ts';
import { decideHost } from '../machine.ts';
import {
  isRepeated,
  type PassResult,
  type RequestOutcome,
  requestOutcome,
  staleEtag,
} from '../pass/pass-result.ts';
import type {
  HostDecision,
  HostEvent,
  HostRequest,
  HostSnapshot,
  ReportVerdict,
  Requester,
} from '../pass/types.ts';
import { logChange } from './change-log.ts';
import type { HostsDependencies } from './dependencies.ts';
import { writeEvidence, writeFacts } from './effects.ts';
import type { ExistingStatements } from './erasure-records.ts';
import { HostFeed, type PassReason } from './feed.ts';
import { FinishedRuns } from './finished-runs.ts';
import { Limits } from './limits.ts';
import { EffectPerformer, failedReport } from './perform.ts';
import { type ServedObserver, StepProgress } from './progress.ts';
import type { LiveSession } from './sessions.ts';
import { mayHoldAddresses, readHostSnapshot, reserveIdentity, takeAddresses } from './snapshot.ts';
import { WaitLog } from './wait-log.ts';
import { nextWakeMs } from './wake.ts';

/** The most compare-and-sets that one event may lose before it fails with an error. */
const roundsMax = 16;

/** What became of the record that a pass decided on. */
type PassWrite =
  | { readonly kind: 'ok'; readonly revision: StoreRevision }
  /** Another writer was first. */
  | { readonly kind: 'conflict' }
  /** A lost pass has written other statements under the same ids. */
  | { readonly kind: 'statementsExist'; readonly statements: ExistingStatements };

export class Hosts {
  readonly #deps: HostsDependencies;
  readonly #finished: FinishedRuns;
  readonly #controller: Controller<HostId, PassReason>;
  readonly #progress = new StepProgress();
  readonly #index = new HostIndex();
  readonly #limits: Limits;
  readonly #feed: HostFeed;
  readonly #performing: EffectPerformer;
  readonly #usual: UsualDurations;
  readonly #waits: WaitLog;

  constructor(deps: HostsDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      retryDelayMs: deps.timing.retryDelayMs,
      keyOf: String,
      fieldsOf: (hostId) => ({ host: hostId }),
      isDue: (hostId, reason) => reason === 'tick' || this.#feed.isNews(hostId),
      pass: (hostId, reason) => this.#pass(hostId, { kind: reason }),
    });
    this.#finished = new FinishedRuns(deps);
    this.#usual = new UsualDurations(deps, this.#index);
    this.#waits = new WaitLog(deps.log);
    this.#limits = new Limits(deps, this.#index, (hostId, lane) => this.wake(hostId, lane));
    this.#feed = new HostFeed(deps, {
      index: this.#index,
      limits: this.#limits,
      controller: this.#controller,
    });
    this.#performing = new EffectPerformer(deps, {
      limits: this.#limits,
      progress: this.#progress,
      controller: this.#controller,
      post: (hostId, event) => this.#post(hostId, event),
    });
    deps.registry.onChange((rackId) => this.wakeRack(rackId));
  }

  /** Loads every host, then follows the store: other replicas and rpc write hosts too. */
  start(): Promise<void> {
    return this.#feed.start();
  }

  stop(): void {
    this.#controller.stop();
    this.#limits.stop();
  }

  /** Applies a request; a refusal writes nothing. */
  async request(
    hostId: HostId,
    request: HostRequest,
    by: Requester,
    expectedRevision?: StoreRevision,
  ): Promise<RequestOutcome> {
    const result = await this.#post(hostId, { kind: 'request', request, by }, expectedRevision);
    return requestOutcome(result);
  }

  /** Reconciles the host soon; `later`: after those that are to be reconciled soon. */
  wake(hostId: HostId, lane: Lane = 'soon'): void {
    this.#controller.wake(hostId, 'tick', lane);
  }

  /**
   * Reconciles a new host soon, unless a pass has already gone on from this revision: it began when
   * the watch reported the record.
   */
  wakeCreated(hostId: HostId, revision: StoreRevision): void {
    if (!this.#feed.hasDecidedAfter(hostId, revision)) this.wake(hostId);
  }

  wakeRack(rackId: RackId): void {
    for (const hostId of this.#index.hostIdsOfRack(rackId)) this.wake(hostId);
  }

  async explain(hostId: HostId): Promise<Explanation | undefined> {
    const more = { usual: await this.#usual.of(hostId), progress: this.progressOf(hostId) };
    return this.consider(hostId, (record, snapshot) => explainHost(record, snapshot, more));
  }

  /** Computes a value from the same data that the host's next pass would use. Writes nothing. */
  async consider<T>(
    hostId: HostId,
    of: (record: wire.HostRecord, snapshot: HostSnapshot) => T,
  ): Promise<T | undefined> {
    const key = storeKey('hosts', hostId);
    const found = await readShared(this.#deps.store, wire.HostRecordSchema, key);
    if (found === undefined) return undefined;
    const { record } = found;
    const { fleet } = this.#limits;
    const session = this.#session(record);
    const { store } = this.#deps;
    const holdsAddresses = (kept: wire.HostRecord) => mayHoldAddresses(store, kept);
    const unknown = { identityOwners: new Map(), disksElsewhere: new Map() };
    const reading = { session, fleet, ...unknown, holdsAddresses };
    return of(record, await readHostSnapshot(this.#deps, record, reading));
  }

  /** The usual durations of the host's runs and their steps. */
  usualOf(hostId: HostId): Promise<UsualTimes> {
    return this.#usual.of(hostId);
  }

  progressOf(hostId: HostId): Progress | undefined {
    return this.#progress.of(hostId);
  }

  /** The position of the host's run in its queue, from 1. */
  queuePosition(record: wire.HostRecord): number | undefined {
    const { name = '' } = record.host ?? {};
    const atAgent = this.#progress.queuePositionOf(idOf(name));
    return this.#limits.queuePosition(record) ?? atAgent;
  }

  isAgentConnected(rackId: RackId): boolean {
    return this.#deps.registry.sessionOf(rackId) !== undefined;
  }

  /** Tells `observer` of changed progress, and of agents that come or go, until it is cancelled. */
  onServedChange(observer: ServedObserver): Cancel {
    const cancelProgress = this.#progress.onChange((hostId) => observer.progressChanged(hostId));
    const cancelAgents = this.#deps.registry.onChange((rackId) => observer.agentChanged(rackId));
    return () => {
      cancelProgress();
      cancelAgents();
    };
  }

  /** Calls `observer` with a rack whose boot snapshot may have changed. */
  onBootChange(observer: (rackId: RackId) => void): void {
    this.#index.onBootChange(observer);
  }

  get passes(): Passes {
    return this.#controller;
  }

  /** The hosts as this replica has read them. */
  get index(): HostIndex {
    return this.#index;
  }

  /** Opens a credential for a session of its rack's agent; throws when it cannot be opened. */
  openCredential(record: wire.CredentialRecord): { username: string; password: string } {
    return this.#deps.openCredential(record);
  }

  hostIdsOfRack(rackId: RackId): HostId[] {
    return this.#index.hostIdsOfRack(rackId);
  }

  /** The host with this uid, if it is one of the rack's. */
  hostIdOfUid(uid: HostUid, rackId: RackId): HostId | undefined {
    return this.#index.hostIdOfUid(uid, rackId);
  }

  /** Folds in an agent's report of a host; resolves once it may be answered. */
  report(hostId: HostId, report: agent.Report): Promise<PassResult> {
    return this.#post(hostId, { kind: 'report', report });
  }

  /** Ends an attempt after an error on our side. */
  fail(
    hostId: HostId,
    operation: { readonly id: OperationId; readonly hostUid: HostUid },
    type: FailureName,
    message: string,
  ): Promise<PassResult> {
    return this.report(hostId, failedReport(operation, type, message));
  }

  hello(
    hostId: HostId,
    journal: agent.Journal,
    listed: readonly agent.JournalledOperation[],
    grants: readonly OperationId[],
  ): Promise<PassResult> {
    return this.#post(hostId, { kind: 'hello', journal, listed, grants });
  }

  forgotten(hostId: HostId): Promise<PassResult> {
    return this.#post(hostId, { kind: 'forgotten' });
  }

  #post(hostId: HostId, event: HostEvent, expectedRevision?: StoreRevision): Promise<PassResult> {
    return this.#controller.take(hostId, () => this.#pass(hostId, event, expectedRevision));
  }

  async #pass(hostId: HostId, event: HostEvent, expected?: StoreRevision): Promise<PassResult> {
    const key = storeKey('hosts', hostId);
    // The Hello of a session that opens during this pass is later in the queue: until then the
    // session does not count.
    const knownRack = this.#index.rackOf(hostId);
    const before = this.#deps.registry.sessionOf(knownRack ?? '');
    let keptStatements: ExistingStatements = new Map();
    for (let round = 0; round < roundsMax; round++) {
      const found = await readShared(this.#deps.store, wire.HostRecordSchema, key);
      if (found === undefined) return this.#gone(hostId);
      const stale = expected !== undefined && found.revision !== expected;
      if (stale && !isRepeated(found.record, event)) return staleEtag(hostId);
      this.#index.note(hostId, found.record, found.revision);
      const session = knownRack === rackIdOf(found.record) ? before : this.#session(found.record);
      const { outcome, snapshot } = await this.#decide(
        found.record,
        event,
        session,
        keptStatements,
      );
      // A refusal decides nothing else: another replica's write that it read still needs a pass.
      if (outcome.kind === 'refused') return { kind: 'refused', refusal: outcome.refusal };
      const written = await this.#write(key, found.record, found.revision, outcome, event);
      if (written.kind === 'statementsExist') {
        keptStatements = new Map([...keptStatements, ...written.statements]);
      }
      if (written.kind !== 'ok') continue;
      const { revision } = written;
      if (revision !== found.revision) this.#waits.note(hostId, outcome.record, snapshot);
      this.#feed.noteDecision(hostId, revision);
      return this.#act(hostId, found.record, outcome, revision);
    }
    throw tooBusy(`hosts/${hostId}`);
  }

  async #decide(
    record: wire.HostRecord,
    event: HostEvent,
    session: LiveSession | undefined,
    keptStatements: ExistingStatements,
  ): Promise<{ readonly outcome: HostDecision; readonly snapshot: HostSnapshot }> {
    const identityOwners = await reserveIdentity(this.#deps, record, event);
    const disksElsewhere = await noteDisks(this.#deps, record, event);
    const { fleet } = this.#limits;
    const holdsAddresses = (kept: wire.HostRecord) => takeAddresses(this.#deps, kept);
    const gathering = { session, fleet, identityOwners, disksElsewhere, holdsAddresses };
    const snapshot = { ...(await readHostSnapshot(this.#deps, record, gathering)), keptStatements };
    return { outcome: decideHost(record, event, snapshot), snapshot };
  }

  #session(record: wire.HostRecord): LiveSession | undefined {
    return this.#deps.registry.sessionOf(rackIdOf(record));
  }

  /** Evidence first, then the record that cites it. */
  async #write(
    key: string,
    before: wire.HostRecord,
    revision: StoreRevision,
    outcome: Exclude<HostDecision, { kind: 'refused' }>,
    event: HostEvent,
  ): Promise<PassWrite> {
    let last = revision;
    if (outcome.kind === 'removed') {
      const intended = await writeIntent(
        this.#deps,
        { key, record: before, revision },
        outcome.record,
        event,
      );
      if (intended.kind === 'conflict') return intended;
      last = intended.revision;
    }
    const statements = await writeEvidence(this.#deps, before, outcome.effects);
    if (statements.size > 0) return { kind: 'statementsExist', statements };
    if (outcome.effects.some((effect) => effect.kind === 'certify')) {
      this.#deps.crashPoint('cp.certificatesStored');
    }
    if (outcome.kind === 'removed') return deleteRecord(this.#deps, key, last);
    const { uid = '' } = before.host ?? {};
    for (const effect of outcome.effects) {
      if (effect.kind === 'facts') await writeFacts(this.#deps, idOfKey(key), uid, effect.facts);
    }
    if (sameMessage(before, outcome.record)) return { kind: 'ok', revision };
    const schema = wire.HostRecordSchema;
    await this.#finished.keepBefore(before, outcome.record);
    const written = await writeShared(this.#deps, schema, key, outcome.record, revision);
    if (written.kind === 'conflict') return written;
    if (event.kind === 'report') this.#deps.crashPoint('cp.reportStored');
    if (outcome.effects.some((effect) => effect.kind === 'send')) {
      this.#deps.crashPoint('cp.operationStored');
    }
    logChange(this.#deps.log, before, outcome.record);
    await this.#finished.keepAfter(outcome.record);
    return written;
  }

  async #act(
    hostId: HostId,
    before: wire.HostRecord,
    outcome: Exclude<HostDecision, { kind: 'refused' }>,
    revision: StoreRevision,
  ): Promise<PassResult> {
    const record = outcome.kind === 'kept' ? outcome.record : before;
    if (outcome.kind === 'kept') this.#index.note(hostId, record, revision);
    let verdict: ReportVerdict | undefined;
    for (const effect of outcome.effects) {
      if (effect.kind === 'answer') verdict = effect.verdict;
      else await this.#performing.perform(hostId, record, effect);
    }
    if (outcome.kind === 'removed') {
      await releaseEverything(this.#deps, hostId, before);
      return this.#gone(hostId, { kind: 'removed' });
    }
    this.#progress.settle(hostId, record);
    const nextMs = nextWakeMs(record, this.#deps.clock.nowMs(), this.#deps.timing);
    this.#controller.wakeAt(hostId, nextMs, 'tick');
    return { kind: 'kept', record, revision, ...(verdict === undefined ? {} : { verdict }) };
  }

  #gone(hostId: HostId, result: PassResult = { kind: 'notFound' }): PassResult {
    this.#index.drop(hostId);
    this.#progress.drop(hostId);
    this.#waits.drop(hostId);
    this.#feed.drop(hostId);
    this.#controller.forget(hostId);
    return result;
  }
}
