/**
 * One session with a rack's agent, from its Hello to its end, without sockets: messages in,
 * messages out.
 *
 * Invariants:
 * 1. No message counts before Hello, and nothing is sent before Welcome.
 * 2. A second agent of a rack with a live session is refused and shown (R6).
 * 3. The work lease is renewed only after this replica's own access to the store (R11).
 * 4. What a Hello names is bounded, and the work of a rack in progress is limited to its share.
 * 5. Once the session ends, for any reason, it no longer speaks for the rack and none of its
 *    messages counts. That holds also when the other side does not notice: an agent that does not
 *    read has no powers either.
 *
 * Must not: decide anything about a host; `Hosts` does.
 */
import { create } from '@bufbuild/protobuf';
import { agent, asAgentSessionId, type HostUid, type RackId } from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { agentBackMs, type LiveSession, settleMs } from '../../host/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { ReleaseSlot } from '../base/rack-slots.ts';
import type { SessionRefusal } from '../base/session-refusal.ts';
import type { SessionSink } from '../base/sink.ts';
import { trustedBy } from '../base/trust.ts';
import { type RackChange, updateRack } from '../base/update-rack.ts';
import { type Rival, rivalHere, validityOf } from '../hello/elsewhere.ts';
import { foldHello } from '../hello/hello-folds.ts';
import { helloProblem } from '../hello/hello-problem.ts';
import { SessionHint } from '../hello/hint.ts';
import { type RecordedRack, recordHello } from '../hello/record-hello.ts';
import { quietMs, readForRenewal, renewalOf } from '../hello/renewal.ts';
import { welcomeTo } from '../hello/welcome.ts';
import { BootSnapshots } from '../push/boot-snapshots.ts';
import { Discoveries } from '../push/discoveries.ts';
import { ForgetRequests } from '../push/forgetting.ts';
import { GivenSecrets } from '../push/given-secrets.ts';
import { PowerSyncs } from '../push/power-sync.ts';
import { Prefetches } from '../push/prefetches.ts';
import { NetworkFaults } from '../reports/network-faults.ts';
import { receiveLog } from '../reports/receive-log.ts';
import { Reports } from '../reports/reports.ts';
import type { SharedBySessions } from './shared.ts';

export class RackSession {
  readonly #deps: SessionDependencies;
  readonly #rackId: RackId;
  readonly #sink: SessionSink;
  readonly #shared: SharedBySessions;
  readonly #reports: Reports;
  /** Unexpected messages: each kind is logged once. */
  readonly #unexpected = new Set<string>();
  readonly #forgetting: ForgetRequests;
  readonly #faults: NetworkFaults;
  #live: LiveSession | undefined;
  #lastMessageMs = 0;
  #openedMs = 0;
  /** How much later than usual the agent, which has no work, may send its next heartbeat. */
  #quietMs = 0;
  /** Hosts whose deadlines passed before the session opened have been checked. */
  #isSettled = false;
  readonly #snapshots: BootSnapshots;
  readonly #powerSyncs: PowerSyncs;
  readonly #discoveries: Discoveries;
  readonly #prefetches: Prefetches;
  readonly #hint: SessionHint;
  /** The rack's registered key when the session began. */
  #key: Uint8Array = new Uint8Array();
  /** It has ended (5). */
  #hasEnded = false;
  /** Aborted when the session ends: it leaves every queue. */
  readonly #gone = new AbortController();
  #isWelcomed = false;

  constructor(
    deps: SessionDependencies,
    shared: SharedBySessions,
    rackId: RackId,
    sink: SessionSink,
  ) {
    this.#deps = deps;
    this.#shared = shared;
    this.#rackId = rackId;
    this.#sink = sink;
    this.#reports = new Reports(deps, rackId, { send: sink.send, end: () => this.#end() });
    this.#forgetting = new ForgetRequests(deps, rackId);
    this.#faults = new NetworkFaults(deps, rackId);
    this.#hint = new SessionHint(deps, rackId);
    const send: SessionSink['send'] = (message) => sink.send(message);
    this.#powerSyncs = new PowerSyncs(deps, rackId, send);
    const secrets = new GivenSecrets(deps, rackId, send);
    this.#prefetches = new Prefetches(deps, rackId, send, secrets);
    const mayTell = () => this.#isWelcomed && !this.#hasEnded;
    const lists = shared.bootLists;
    this.#snapshots = new BootSnapshots(deps, rackId, { lists, secrets, send, mayTell });
    this.#discoveries = new Discoveries(deps, shared.findings, rackId, send);
  }

  get rackId(): RackId {
    return this.#rackId;
  }

  get isOver(): boolean {
    return this.#hasEnded;
  }

  /** Takes one message. Resolves when the next message may be handled. */
  async receive(request: agent.SessionRequest): Promise<void> {
    const { message } = request;
    if (this.#hasEnded) return;
    if (this.#live !== undefined && !this.#isLive()) return this.#end();
    const silentMs = this.#deps.clock.nowMs() - this.#lastMessageMs;
    this.#lastMessageMs += silentMs;
    if (this.#live === undefined) {
      this.#openedMs = this.#lastMessageMs;
      if (message.case === 'hello') await this.#welcomeWithSlot(message.value);
      else this.#refuse('badHello', 'the first message of a session must be Hello');
      return;
    }
    // Deadlines that passed in the meantime could not fire (R5).
    const isBackLongEnough = this.#lastMessageMs >= this.#openedMs + agentBackMs;
    if (silentMs >= settleMs + this.#quietMs || (isBackLongEnough && !this.#isSettled)) {
      this.#deps.hosts.wakeRack(this.#rackId);
    }
    this.#isSettled ||= isBackLongEnough;
    if (message.case === 'heartbeat') this.#quietMs = quietMs(message.value, this.#deps.timing);
    await this.#handle(message);
  }

  async #handle(message: agent.SessionRequest['message']): Promise<void> {
    switch (message.case) {
      case 'heartbeat':
        await this.#renewLease(message.value);
        return;
      case 'report':
        await this.#withSlot((over) => this.#reports.fold(message.value, over));
        return;
      case 'hostForgotten':
        await this.#withSlot((over) => this.#handleForgotten(message.value.hostUid).finally(over));
        return;
      case 'powerDigest':
        await this.#withSlot((over) => this.#foldDigest(message.value, over));
        return;
      case 'discovered':
        this.#discoveries.receiveFinding(message.value);
        return;
      case 'stepLog':
        await receiveLog(this.#deps, this.#rackId, message.value, (work) => this.#withSlot(work));
        return;
      case 'imagePrefetched':
        this.#prefetches.receiveProgress(message.value);
        return;
      case 'networkFaults':
        this.#faults.receive(message.value);
        return;
      case 'bmcRead':
        if (this.#isLive()) this.#deps.bmcReads?.receiveAnswer(this.#rackId, message.value);
        return;
      case 'consoleOutput':
        if (this.#isLive()) this.#deps.consoles?.receiveOutput(this.#rackId, message.value);
        return;
      case 'snapshotApplied':
        return;
      case 'trustApplied':
        await this.#handleTrustApplied(message.value);
        return;
      default:
        this.#noteUnexpected(message.case ?? 'of an unknown kind');
    }
  }

  /** Written no faster than authorities are created and removed. */
  async #handleTrustApplied(applied: agent.TrustApplied): Promise<void> {
    await this.#shared.trustWrites.wait(this.#rackId, this.#deps.clock);
    const write = async () => {
      const trustedCaSha256 = await trustedBy(applied, this.#deps.trust);
      await this.#updateRack((record) => Object.assign(record, { trustedCaSha256 }));
    };
    if (!this.#hasEnded) await this.#withSlot((over) => write().finally(over));
  }

  #noteUnexpected(kind: string): void {
    if (this.#unexpected.has(kind)) return;
    this.#unexpected.add(kind);
    this.#deps.log.warn({ rack: this.#rackId, message: kind }, 'unexpected message');
  }

  /** The next message is not read before this one has a slot. */
  async #withSlot(work: (over: ReleaseSlot) => unknown): Promise<void> {
    const slot = this.#shared.reportSlots.take(this.#rackId, this.#gone.signal);
    if (!(slot instanceof Promise)) return void (await work(slot));
    const over = await slot;
    if (this.#isLive()) return void (await work(over));
    over();
    this.#end();
  }

  #foldDigest(digest: agent.PowerDigest, over: ReleaseSlot): void {
    this.#powerSyncs
      .digest(digest)
      .catch((error: unknown) => this.#reports.breakOff({ operationId: '' }, error))
      .finally(over);
  }

  /** Whether this session is still the valid one of the rack; a replaced one has no powers (R6). */
  #isLive(): boolean {
    const { registry } = this.#deps;
    return this.#live !== undefined && registry.sessionOf(this.#rackId) === this.#live;
  }

  #end(): void {
    this.closed();
    this.#sink.end();
  }

  /** The session is over, for any reason (5). */
  closed(): void {
    this.#hasEnded = true;
    this.#gone.abort();
    this.#discoveries.closed();
    if (this.#live === undefined) return;
    this.#deps.log.info({ rack: this.#rackId }, 'agent session ended');
    const wasLive = this.#isLive();
    this.#deps.registry.close(this.#live);
    this.#live = undefined;
    if (!wasLive) return;
    this.#prefetches.closed();
    void this.#hint.withdraw(() => this.#lastMessageMs);
  }

  #refuse(reason: SessionRefusal, message: string): void {
    this.#deps.log.warn({ rack: this.#rackId, reason }, message);
    this.#sink.send({ case: 'refused', value: create(agent.RefusedSchema, { reason, message }) });
    this.#end();
  }

  async #welcomeWithSlot(hello: agent.Hello): Promise<void> {
    const problem = helloProblem(hello, this.#shared.limits);
    if (problem !== undefined) return this.#refuse('badHello', problem);
    const over = await this.#shared.hellos.take(this.#rackId, this.#gone.signal);
    try {
      if (!this.#hasEnded) await this.#welcome(hello);
    } finally {
      over();
    }
  }

  async #welcome(hello: agent.Hello): Promise<void> {
    const { journal } = hello;
    if (journal === undefined) return;
    if (await this.#yields(hello)) return;
    // Work of a host that this replica does not know yet would be cancelled, or forgotten.
    await this.#deps.fleetView.caughtUp();
    const outcome = await recordHello(this.#deps, this.#rackId, hello, journal, this.#hint);
    switch (outcome.kind) {
      case 'noRack':
        return this.#refuse('unknownRack', `the rack ${this.#rackId} does not exist`);
      case 'rival':
        return this.#refuse('duplicateAgent', outcome.text);
      case 'welcome':
        return this.#open(hello, journal, outcome.recorded);
    }
  }

  async #open(hello: agent.Hello, journal: agent.Journal, recorded: RecordedRack): Promise<void> {
    this.#key = recorded.key;
    const live = this.#liveSession(journal, hello);
    await this.#sendWelcome(hello, live, recorded);
    this.sendTrust();
    await this.sendSnapshot();
    // The stream may have ended in the meantime, or a newer session may have opened.
    if (this.#hasEnded) return this.#hint.withdraw(() => this.#lastMessageMs);
    if (this.#rival(hello) !== undefined && (await this.#yields(hello))) return;
    this.#live = live;
    this.#deps.log.info({ rack: this.#rackId, agentVersion: hello.agentVersion }, 'agent session');
    // Queued before any work that the opening wakes, so that no deadline fires on old knowledge.
    const folded = this.#reconcile(hello);
    this.#deps.registry.open(live);
    await folded;
    void this.sendPowerSync();
  }

  /** Refuses an agent that must not replace the valid session, and shows it. */
  async #yields(hello: agent.Hello): Promise<boolean> {
    const rival = this.#rival(hello);
    if (rival === undefined) return false;
    await this.#updateRack((_record, status) => {
      status.duplicateAgent = rival.text;
    });
    this.#refuse('duplicateAgent', rival.text);
    return true;
  }

  /** The certificate authorities that the agent is to trust from now on, once it is welcome (1). */
  sendTrust(): void {
    const { trust } = this.#deps;
    if (this.#isWelcomed && trust !== undefined)
      this.#sink.send({ case: 'trustBundle', value: trust.bundle() });
  }

  /** Its key is no longer the rack's, or its certificate is no longer valid. */
  dismiss(reason: SessionRefusal, message: string): void {
    if (!this.#hasEnded) this.#refuse(reason, message);
  }

  /** R6: the rival whose valid session on this replica this agent must not replace. */
  #rival(hello: agent.Hello): Rival | undefined {
    const current = this.#deps.registry.sessionOf(this.#rackId);
    return current && rivalHere(current, hello, this.#deps);
  }

  #liveSession(
    journal: agent.Journal,
    { operationKinds, bmcReads, watchesConsoles }: agent.Hello,
  ): LiveSession {
    return {
      rackId: this.#rackId,
      sessionId: asAgentSessionId(randomId(this.#deps.random)),
      journal,
      operationKinds,
      bmcReads,
      watchesConsoles,
      lastMessageMs: () => this.#lastMessageMs,
      openedMs: this.#openedMs,
      awaitsReport: (operationId) => this.#reports.isAwaited(operationId),
      send: (message) => this.#snapshots.sendInOrder(message),
      end: () => this.#end(),
    };
  }

  /** False when the rack does not exist. */
  #updateRack(change: RackChange): Promise<boolean> {
    return updateRack(this.#deps, this.#rackId, change);
  }

  async #sendWelcome(
    hello: agent.Hello,
    { sessionId, journal }: LiveSession,
    { isGuarded, lostRevisions, tombstones }: RecordedRack,
  ): Promise<void> {
    for (const { operationId, state, answered } of hello.operations) {
      const isEnded = state === agent.JournalledOperation_State.ENDED;
      if (isEnded && !answered) this.#reports.noteAnnounced(operationId);
    }
    const value = await welcomeTo(this.#deps, hello, {
      ...{ rackId: this.#rackId, sessionId, journal, isGuarded, lostRevisions },
      forgetHostUids: this.#forgetting.due(tombstones, this.#deps.clock.nowMs()),
      isOver: () => this.#hasEnded,
    });
    if (value === undefined) return;
    this.#sink.send({ case: 'welcome', value });
    this.#isWelcomed = true;
  }

  /** R10: each host of the rack takes in what the agent knows of it. */
  async #reconcile(hello: agent.Hello): Promise<void> {
    const folded = await foldHello(this.#deps, this.#rackId, hello, () => this.#isLive());
    // Facts that only a Hello brings would be missing until the next one.
    if (folded === 'storeAway') this.#end();
  }

  async #renewLease(heartbeat: agent.Heartbeat): Promise<void> {
    const { store, timing, replicaId } = this.#deps;
    const asOf = await readForRenewal(store, this.#rackId);
    const { rack, fleet, revision } = asOf;
    const journal = this.#isLive() ? this.#live?.journal : undefined;
    const validity = validityOf(rack?.record, { journal, key: this.#key, replicaId });
    if (validity.kind === 'over') {
      const { text: reason } = validity;
      this.#deps.log.warn({ rack: this.#rackId, reason }, 'the session is not the rack’s');
      this.#end();
      return;
    }
    for (const message of renewalOf(heartbeat, asOf, timing)) this.#sink.send(message);
    this.#powerSyncs.onHeartbeat(rack?.record, revision);
    this.#discoveries.onHeartbeat(rack?.record, revision);
    this.#prefetches.onHeartbeat(rack?.record, fleet?.record);
    this.#snapshots.onHeartbeat(fleet);
    this.#askToForget(rack?.record.tombstones ?? []);
    await this.#faults.write();
    await this.#hint.renew(rack?.record);
  }

  /** Another replica may have removed a host by force, and a push may have been lost. */
  #askToForget(tombstones: readonly HostUid[]): void {
    for (const hostUid of this.#forgetting.due(tombstones, this.#deps.clock.nowMs())) {
      this.#sink.send({ case: 'forget', value: create(agent.ForgetSchema, { hostUid }) });
    }
  }

  async #handleForgotten(hostUid: HostUid): Promise<void> {
    const hostId = this.#deps.hosts.hostIdOfUid(hostUid, this.#rackId);
    if (hostId !== undefined) await this.#deps.hosts.forgotten(hostId);
    await this.#forgetting.confirm(hostUid);
  }

  /** The hosts whose power the agent is to poll, once it is welcome. */
  async sendPowerSync(): Promise<void> {
    if (this.#live !== undefined && this.#isLive()) await this.#powerSyncs.refresh();
  }

  /** What the boot path needs to know of the rack's hosts, once it is welcome (1). */
  async sendSnapshot(): Promise<void> {
    await this.#snapshots.send();
  }
}
