/**
 * The shell around the host machine: reads the record, lets `step` decide, writes, then acts. One
 * queue per host, so that its events are folded in one after another.
 *
 * Invariants:
 * 1. Nothing is sent or answered before the record that says so is durable (R3, R7).
 * 2. A record is written only when it differs from the one that was read (R2).
 * 3. A lost compare-and-set repeats the whole decision on what stands there now.
 * 4. Nothing is kept here that the store cannot rebuild, percent of progress excepted.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent, type Explanation, type Progress, store as wire } from '@rackwright/api';
import type { Clock, CrashPoint, Log, Random } from '@rackwright/platform';
import { type Listing, type StateStore, storeKey } from '@rackwright/store';
import type { LiveSession, SessionRegistry } from '../../agents/registry.ts';
import type { AuditSink } from '../../audit/index.ts';
import type { Follower, Following } from '../../following/index.ts';
import { isAway, readShared, sharedRecordOf, tooBusy, writeShared } from '../../records/index.ts';
import { whyNotGiven } from '../../secrets/index.ts';
import { Alarms, OneByOne, resyncLater } from '../../waking/index.ts';
import { explainHost } from '../explain/explain.ts';
import { HostIndex, hostIdOfKey, rackIdOf } from '../fleet/host-index.ts';
import { identityReservation, releaseEverything, removeRecord } from '../fleet/removal.ts';
import { release } from '../fleet/reservations.ts';
import { UsualDurations, type UsualTimes } from '../fleet/usual.ts';
import { step } from '../machine.ts';
import type { EngineTiming } from '../turn/timing.ts';
import {
  isRepeated,
  type RequestOutcome,
  requestOutcome,
  staleEtag,
  type TurnResult,
} from '../turn/turn-result.ts';
import type {
  AnswerVerdict,
  CallResult,
  HostContext,
  HostEffect,
  HostEvent,
  HostOutcome,
  HostRequest,
  Requester,
} from '../turn/types.ts';
import { type CallWebhook, callNobody, type WebhookOrder } from '../turn/webhook-order.ts';
import { logChange } from './change-log.ts';
import { sendCancel, sendForget, sendOperation, writeEvidence, writeFacts } from './effects.ts';
import { FinishedRuns } from './finished-runs.ts';
import { Limits } from './limits.ts';
import type { HeldPlace } from './places.ts';
import { StepProgress } from './progress.ts';
import { gatherContext, reserveIdentity } from './surroundings.ts';
import { WaitLog } from './wait-log.ts';
import { nextWakeMs } from './wake.ts';

export interface HostsDependencies {
  readonly store: StateStore;
  /** Of the same store. */
  readonly following: Following;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly timing: EngineTiming;
  readonly registry: SessionRegistry;
  /** Signs the exact bytes of an erasure statement; DER. */
  readonly signStatement: (statement: Uint8Array) => Uint8Array;
  /** Opens a credential for the session that is about to need it. */
  readonly openCredential: (record: wire.CredentialRecord) => {
    username: string;
    password: string;
  };
  /** Told which secret went to which operation. */
  readonly audit?: AuditSink;
  readonly resyncIntervalMs: number;
  /** Names this replica; the same at each start where there can be only one. */
  readonly replicaId: string;
  /** Makes the calls of webhook steps. Unset: they fail. */
  readonly callWebhook?: CallWebhook;
}

/** Compare-and-sets that one event may lose before it is given up with an error. */
const roundsMax = 16;

export class Hosts {
  readonly #deps: HostsDependencies;
  readonly #finished: FinishedRuns;
  readonly #turns = new OneByOne();
  readonly #alarms: Alarms;
  readonly #progress = new StepProgress();
  readonly #index = new HostIndex();
  readonly #limits: Limits;
  /** The newest revision of each host that this replica has decided on. */
  readonly #decided = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #usual: UsualDurations;
  readonly #waits: WaitLog;

  constructor(deps: HostsDependencies) {
    this.#deps = deps;
    this.#alarms = new Alarms(deps.clock);
    this.#finished = new FinishedRuns(deps);
    this.#usual = new UsualDurations(deps, this.#index);
    this.#waits = new WaitLog(deps.log);
    this.#limits = new Limits(deps, this.#index, (hostId) => this.wake(hostId));
    deps.registry.onChange((rackId) => this.wakeRack(rackId));
  }

  /** Loads every host, then follows the store: other replicas and rpc write hosts too. */
  async start(): Promise<void> {
    // No host is looked at before it is known what racks and the fleet say about it.
    const known = this.#limits.start();
    const once = (look: () => void) => void known.then(look, () => undefined);
    let isFirst = true;
    // A resync may list at the same time: each listing has its own.
    let held: readonly HeldPlace[] = [];
    const follower: Follower = {
      listing: () => {
        held = isFirst ? [] : this.#limits.held();
      },
      listed: (listing) => {
        isFirst = false;
        this.#takeIn(listing, held);
        once(() => this.#lookAtAll(listing));
      },
      changed: ({ key, revision }) => once(() => this.#changed(hostIdOfKey(key), revision)),
    };
    const { signal } = this.#stopping;
    await Promise.all([known, this.#deps.following.follow('hosts', follower, signal)]);
    resyncLater(this.#deps, () => this.#resync(), signal);
  }

  /** Indexes every host; whoever asks for a host by its uid afterwards finds it. */
  #takeIn({ entries }: Listing, held: readonly HeldPlace[]): void {
    for (const entry of entries) {
      const record = sharedRecordOf(this.#deps.store, wire.HostRecordSchema, entry);
      this.#index.note(hostIdOfKey(entry.key), record);
    }
    this.#limits.afterListing(held);
  }

  #lookAtAll({ entries }: Listing): void {
    const listed = new Map(entries.map(({ key, revision }) => [hostIdOfKey(key), revision]));
    for (const hostId of new Set([...this.#index.hostIds(), ...listed.keys()])) {
      this.#lookAt(hostId, listed.get(hostId) ?? 0);
    }
  }

  stop(): void {
    this.#stopping.abort();
    this.#limits.stop();
    this.#alarms.stop();
  }

  /** Applies what a person asks; refuses without writing anything. */
  async request(
    hostId: string,
    request: HostRequest,
    by: Requester,
    expectedRevision?: number,
  ): Promise<RequestOutcome> {
    const result = await this.#post(hostId, { kind: 'request', request, by }, expectedRevision);
    return requestOutcome(result);
  }

  /** Looks at the host again soon. */
  wake(hostId: string, event: HostEvent = { kind: 'tick' }): void {
    this.#alarms.clear(hostId);
    if (this.#stopping.signal.aborted) return;
    this.#post(hostId, event).catch((error: unknown) => {
      this.#deps.log.warn({ host: hostId, error: String(error) }, 'a look at the host failed');
      const againMs = this.#deps.clock.nowMs() + this.#deps.timing.retryDelayMs;
      this.#alarms.set(hostId, againMs, () => this.wake(hostId, event));
    });
  }

  wakeRack(rackId: string): void {
    for (const hostId of this.#index.hostIdsOfRack(rackId)) this.wake(hostId);
  }

  async explain(hostId: string): Promise<Explanation | undefined> {
    const more = { usual: await this.#usual.of(hostId), progress: this.progressOf(hostId) };
    return this.consider(hostId, (record, context) => explainHost(record, context, more));
  }

  /** Computes something of a host from what its next turn would be decided by. */
  async consider<T>(
    hostId: string,
    of: (record: wire.HostRecord, context: HostContext) => T,
  ): Promise<T | undefined> {
    const key = storeKey('hosts', hostId);
    const found = await readShared(this.#deps.store, wire.HostRecordSchema, key);
    if (found === undefined) return undefined;
    const { record } = found;
    const { fleet } = this.#limits;
    const session = this.#session(record);
    return of(record, await gatherContext(this.#deps, record, new Map(), session, fleet));
  }

  /** How long runs of the host and their steps usually take. */
  usualOf(hostId: string): Promise<UsualTimes> {
    return this.#usual.of(hostId);
  }

  progressOf(hostId: string): Progress | undefined {
    return this.#progress.of(hostId);
  }

  /** Where the host's run stands in the queue that it waits in, from 1. */
  queuePosition(record: wire.HostRecord): number | undefined {
    const { name = '' } = record.host ?? {};
    const atAgent = this.#progress.placeOf(name.replace(/^hosts\//, ''));
    return this.#limits.queuePosition(record) ?? atAgent;
  }

  agentConnected(rackId: string): boolean {
    return this.#deps.registry.sessionOf(rackId) !== undefined;
  }

  /** Calls `listener` with a rack whose boot snapshot may have changed. */
  onBootChange(listener: (rackId: string) => void): void {
    this.#index.onBootChange(listener);
  }

  /** The hosts as this replica has read them. */
  get index(): HostIndex {
    return this.#index;
  }

  /** Opens a credential for a session of its rack's agent; throws when it cannot be opened. */
  openCredential(record: wire.CredentialRecord): { username: string; password: string } {
    return this.#deps.openCredential(record);
  }

  hostIdsOfRack(rackId: string): string[] {
    return this.#index.hostIdsOfRack(rackId);
  }

  /** The host with this uid, if it is one of the rack's. */
  hostIdOfUid(uid: string, rackId: string): string | undefined {
    return this.#index.hostIdOfUid(uid, rackId);
  }

  /** Folds in what an agent says of a host; resolves once the answer may be given. */
  report(hostId: string, report: agent.Report): Promise<TurnResult> {
    return this.#post(hostId, { kind: 'report', report });
  }

  hello(
    hostId: string,
    journal: agent.Journal,
    listed: readonly agent.JournalledOperation[],
    grants: readonly string[],
  ): Promise<TurnResult> {
    return this.#post(hostId, { kind: 'hello', journal, listed, grants });
  }

  forgotten(hostId: string): Promise<TurnResult> {
    return this.#post(hostId, { kind: 'forgotten' });
  }

  #post(hostId: string, event: HostEvent, expectedRevision?: number): Promise<TurnResult> {
    return this.#turns.take(hostId, () => this.#turn(hostId, event, expectedRevision));
  }

  async #turn(hostId: string, event: HostEvent, expected?: number): Promise<TurnResult> {
    const key = storeKey('hosts', hostId);
    // One that opens while this turn reads has its Hello behind it in the queue: not before that.
    const knownRack = this.#index.rackOf(hostId);
    const before = this.#deps.registry.sessionOf(knownRack ?? '');
    for (let round = 0; round < roundsMax; round++) {
      const found = await readShared(this.#deps.store, wire.HostRecordSchema, key);
      if (found === undefined) return this.#gone(hostId);
      const stale = expected !== undefined && found.revision !== expected;
      if (stale && !isRepeated(found.record, event)) return staleEtag(hostId);
      this.#index.note(hostId, found.record);
      this.#decided.set(hostId, found.revision);
      const session = knownRack === rackIdOf(found.record) ? before : this.#session(found.record);
      const { outcome, context } = await this.#decide(found.record, event, session);
      if (outcome.kind === 'refused') return { kind: 'refused', refusal: outcome.refusal };
      const revision = await this.#write(key, found.record, found.revision, outcome, event);
      if (revision === undefined) continue;
      if (revision !== found.revision) this.#waits.note(hostId, outcome.record, context);
      this.#decided.set(hostId, revision);
      return this.#act(hostId, found.record, outcome, revision);
    }
    throw tooBusy(`hosts/${hostId}`);
  }

  async #decide(
    record: wire.HostRecord,
    event: HostEvent,
    session: LiveSession | undefined,
  ): Promise<{ readonly outcome: HostOutcome; readonly context: HostContext }> {
    const owners = await reserveIdentity(this.#deps, record, event);
    const { fleet } = this.#limits;
    const context = await gatherContext(this.#deps, record, owners, session, fleet);
    return { outcome: step(record, event, context), context };
  }

  #session(record: wire.HostRecord): LiveSession | undefined {
    return this.#deps.registry.sessionOf(rackIdOf(record));
  }

  /** Evidence first, then the record that cites it. Undefined when another writer was faster. */
  async #write(
    key: string,
    before: wire.HostRecord,
    revision: number,
    outcome: Exclude<HostOutcome, { kind: 'refused' }>,
    event: HostEvent,
  ): Promise<number | undefined> {
    await writeEvidence(this.#deps, before, outcome.effects);
    if (outcome.kind === 'removed') {
      return removeRecord(this.#deps, key, outcome.record, revision, event);
    }
    for (const effect of outcome.effects) {
      if (effect.kind === 'facts') await writeFacts(this.#deps, hostIdOfKey(key), effect.facts);
    }
    if (equals(wire.HostRecordSchema, before, outcome.record)) return revision;
    const schema = wire.HostRecordSchema;
    await this.#finished.keepBefore(before, outcome.record);
    const written = await writeShared(this.#deps, schema, key, outcome.record, revision);
    if (written.kind === 'conflict') return undefined;
    if (event.kind === 'report') this.#deps.crashPoint('cp.reportStored');
    if (outcome.effects.some((effect) => effect.kind === 'send')) {
      this.#deps.crashPoint('cp.operationStored');
    }
    logChange(this.#deps.log, before, outcome.record);
    await this.#finished.keepAfter(outcome.record);
    return written.revision;
  }

  async #act(
    hostId: string,
    before: wire.HostRecord,
    outcome: Exclude<HostOutcome, { kind: 'refused' }>,
    revision: number,
  ): Promise<TurnResult> {
    const record = outcome.kind === 'kept' ? outcome.record : before;
    if (outcome.kind === 'kept') this.#index.note(hostId, record);
    let verdict: AnswerVerdict | undefined;
    for (const effect of outcome.effects) {
      if (effect.kind === 'answer') verdict = effect.verdict;
      else await this.#perform(hostId, record, effect);
    }
    if (outcome.kind === 'removed') {
      await releaseEverything(this.#deps, hostId, before);
      return this.#gone(hostId, { kind: 'removed' });
    }
    this.#progress.settle(hostId, record);
    const nextMs = nextWakeMs(record, this.#deps.clock.nowMs());
    this.#alarms.set(hostId, nextMs, () => this.wake(hostId));
    return { kind: 'kept', record, revision, ...(verdict === undefined ? {} : { verdict }) };
  }

  async #perform(hostId: string, record: wire.HostRecord, effect: HostEffect): Promise<void> {
    const rackId = rackIdOf(record);
    switch (effect.kind) {
      case 'certify':
      case 'answer':
      case 'abandon':
      case 'facts':
      case 'stepOutput':
        return;
      case 'callWebhook':
        this.#callWebhook(hostId, effect);
        return;
      case 'send':
        await this.#sendOrFail(hostId, rackId, effect.operation);
        return;
      case 'releaseIdentity':
        if (record.host !== undefined) {
          await release(this.#deps, record.host, [identityReservation(effect.guid)]);
        }
        return;
      case 'cancel':
        sendCancel(this.#deps, rackId, record, effect);
        return;
      case 'progress':
        this.#progress.keep(hostId, record, effect.continuing, this.#deps.clock.nowMs());
        return;
      case 'quota':
        this.#limits.change(record, effect);
        return;
      case 'tombstone':
      case 'forget':
        sendForget(this.#deps, rackId, record);
    }
  }

  #callWebhook(hostId: string, order: WebhookOrder): void {
    const answer = (result: CallResult) =>
      this.#post(hostId, { kind: 'webhookResult', id: order.id, result });
    (this.#deps.callWebhook ?? callNobody)(order, answer);
  }

  /** What cannot be sent at all ends as a failure of its host, and is nobody else's matter. */
  async #sendOrFail(hostId: string, rackId: string, operation: agent.Operation): Promise<void> {
    try {
      await sendOperation(this.#deps, rackId, operation);
    } catch (error) {
      this.#deps.log.error({ host: hostId, error: String(error) }, 'an operation cannot be sent');
      const message = whyNotGiven(error);
      const ended = isAway(error)
        ? Promise.reject(error)
        : this.fail(hostId, operation, 'credentialUnusable', message);
      ended.catch(() => this.#sendLater(hostId, rackId, operation));
    }
  }

  /** The store was away; what has not been sent is tried again while it is what shall be sent. */
  #sendLater(hostId: string, rackId: string, operation: agent.Operation): void {
    const again = async () => {
      const key = storeKey('hosts', hostId);
      const kept = await readShared(this.#deps.store, wire.HostRecordSchema, key);
      if (kept?.record.operation?.operation?.id !== operation.id) return;
      await this.#sendOrFail(hostId, rackId, operation);
    };
    this.#deps.clock.after(this.#deps.timing.retryDelayMs, () => {
      if (this.#stopping.signal.aborted) return;
      this.#turns.take(hostId, again).catch(() => this.#sendLater(hostId, rackId, operation));
    });
  }

  /** Ends an attempt that went wrong on our side, as the agent would have reported it. */
  fail(
    hostId: string,
    { id, hostUid }: { readonly id: string; readonly hostUid: string },
    type: string,
    message: string,
  ): Promise<TurnResult> {
    const value = create(agent.FailedSchema, { type, message });
    const result = { case: 'failed' as const, value };
    return this.report(hostId, create(agent.ReportSchema, { operationId: id, hostUid, result }));
  }

  #gone(hostId: string, result: TurnResult = { kind: 'notFound' }): TurnResult {
    this.#index.drop(hostId);
    this.#progress.drop(hostId);
    this.#waits.drop(hostId);
    this.#decided.delete(hostId);
    this.#alarms.clear(hostId);
    return result;
  }

  /** Somebody wrote the host; what we wrote ourselves has been decided on already. */
  #changed(hostId: string, revision: number): void {
    void this.#turns.take(hostId, async () => {
      if (this.#isNews(hostId, revision)) this.#lookAt(hostId, revision);
    });
  }

  #isNews(hostId: string, revision: number): boolean {
    return (this.#decided.get(hostId) ?? 0) < revision;
  }

  #lookAt(hostId: string, revision: number): void {
    this.wake(hostId, { kind: this.#isNews(hostId, revision) ? 'written' : 'tick' });
  }

  async #resync(): Promise<void> {
    const held = this.#limits.held();
    const listing = await this.#deps.store.list('hosts');
    this.#takeIn(listing, held);
    this.#lookAtAll(listing);
  }
}
