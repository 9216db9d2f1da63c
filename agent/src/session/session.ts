/**
 * The agent's side of the session with the control plane (DESIGN §3): the same code in production
 * and in the simulation. All input and output goes through the platform interfaces.
 *
 * S1 The journal decides what is known; memory only runs ahead of it where nothing is promised.
 * S2 Each session starts with Hello, which lists all that is kept (R10). Nothing that was kept from
 *    an earlier start begins before it is answered.
 * S3 Secrets stay in memory. Must not: touch BMCs, runners or sockets; decide about retries,
 *    deadlines of runs, or states.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent, type HostUid, type OperationId, type StoreRefusal } from '@rackwright/messages';
import type { Clock, CrashPoint, Disk, Log, Random } from '@rackwright/platform';
import type { RecordSpan } from '@rackwright/trace';
import { type Journal, storeSeen } from '../journal/index.ts';
import { Attempts } from './attempts.ts';
import { type BootState, KeptBootSnapshots, makeBootState } from './boot-snapshot.ts';
import { brakeOf } from './brake.ts';
import { Credentials } from './credentials.ts';
import { withDisturbanceNotes } from './disturbing.ts';
import type { BootGrantState, Credential, Executor, PowerReadings } from './executor.ts';
import { Facts, type ObservationsInit } from './facts.ts';
import { Grants } from './grants.ts';
import { type HandOffState, handOffOf } from './hand-off.ts';
import { defaultSessionLimits, type SessionLimits } from './limits.ts';
import { AgentLink, type LinkStatus } from './link.ts';
import type { SessionObserver } from './observer.ts';
import { passToReceiver, type SessionReceivers, type TrustKeeper } from './receivers.ts';
import { type KnownStorePosition, storeInHello, storeRefusal } from './store-refusal.ts';
import type { SessionTransport } from './transport.ts';
import { WorkLease } from './work-lease.ts';

export interface SessionOptions extends SessionReceivers {
  /** Open, with its generation raised. */
  readonly journal: Journal;
  readonly disk: Disk;
  /** The path of the copy of the boot snapshot; its folder must exist. */
  readonly snapshotPath: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /**
   * Ends the process at a named place. One that returns (a simulation) must have cut off disk,
   * clock and transport before.
   */
  readonly crashPoint: CrashPoint;
  readonly transport: SessionTransport;
  readonly agentVersion: string;
  /** Keeps the trusted authorities; without it messages about them are ignored. */
  readonly trust?: TrustKeeper;
  /** Receives the netboots of hosts, by their uid, at each new boot snapshot. */
  readonly onNetboots?: (netboots: ReadonlyMap<HostUid, agent.Deployment>) => void;
  readonly observer?: SessionObserver;
  /** Records the span of each operation that has run; unset: none is recorded. */
  readonly recordSpan?: RecordSpan;
  readonly limits?: Partial<SessionLimits>;
}

interface RunningParts {
  readonly executor: Executor;
  readonly power: PowerReadings | undefined;
  readonly attempts: Attempts;
}

export class AgentSession {
  /** Boot grants: opened by operations, bound by the runner gateway, read by the boot path. */
  readonly grants: Grants;
  /** The boot path's memory. The same object until something changes. */
  readonly bootState: () => BootState;
  readonly #options: SessionOptions;
  readonly #limits: SessionLimits;
  readonly #lease: WorkLease;
  readonly #credentials: Credentials;
  readonly #facts: Facts;
  readonly #snapshots: KeptBootSnapshots;
  readonly #link: AgentLink;
  readonly #forgetting = new Map<HostUid, Promise<void>>();
  /** The incarnation of the store behind the present session; empty before the first. */
  #incarnation = create(agent.WelcomeSchema).incarnation;
  /** Why the store’s destructive work and boot list are refused; undefined: they are not. */
  #refusal: StoreRefusal | undefined;
  #running: RunningParts | undefined;

  constructor(options: SessionOptions) {
    const { journal, disk, snapshotPath, clock, log, limits } = options;
    this.#options = options;
    this.#limits = { ...defaultSessionLimits, ...limits };
    this.#lease = new WorkLease(clock, log, this.#limits.leaseLongestMs);
    const { credentialsMax, credentialsKeptMs } = this.#limits;
    this.#credentials = new Credentials(clock, log, credentialsMax, credentialsKeptMs);
    this.#facts = new Facts(log, this.#limits.factsHostsMax);
    const { onNetboots } = options;
    this.#snapshots = new KeptBootSnapshots(disk, snapshotPath, log, onNetboots);
    const onOpened = (grant: BootGrantState): void => {
      this.#facts.clearBootFacts(grant.hostUid);
      options.observer?.bootOpened(grant);
    };
    this.grants = new Grants({ ...options, onOpened });
    const grants = () => this.grants.active();
    this.bootState = makeBootState(this.#snapshots, () => journal.state, grants);
    this.#link = new AgentLink({
      ...options,
      limits: this.#limits,
      hello: () => this.#hello(),
      onWelcome: (welcome) => this.#handleWelcome(welcome),
      onFailure: () => void options.trust?.sessionFailed(),
      onMessage: (message) => this.#handleMessage(message),
      hasWork: () => this.#hasWork(),
      onHeartbeat: (sequence) => this.#lease.heartbeatSent(sequence),
    });
  }

  /**
   * Resumes the state of the previous start, then dials, without end. Resolves when the first dial
   * is under way. To be called once. Without `power` nothing reads power between operations.
   */
  async start(given: Executor, power?: PowerReadings): Promise<void> {
    const executor = power === undefined ? given : withDisturbanceNotes(given, power);
    if (this.#running !== undefined) throw new Error('the session has been started before');
    const attempts = new Attempts({
      ...this.#options,
      limits: this.#limits,
      lease: this.#lease,
      credentials: this.#credentials,
      grants: this.grants,
      outlet: this.#link,
      executor,
    });
    this.#running = { executor, power, attempts };
    await this.#snapshots.load();
    // A new journal remembers no store: the copy of the old one's may count further than the store.
    if (this.#options.journal.state.store === undefined) await this.#snapshots.startOver();
    await attempts.recover();
    this.#link.start();
  }

  /** Closes the stream and dials no more. Operations run on; their reports stay in the journal. */
  stop(): void {
    this.#running?.power?.stop();
    this.#link.stop();
  }

  /**
   * Opens the next session, with the present credential, and leaves this one when the next is open.
   */
  move(reason: string): void {
    this.#link.move(reason);
  }

  status(): LinkStatus {
    return this.#link.status;
  }

  /** Final reports that the control plane has not answered. */
  get unanswered(): number {
    return this.#running?.attempts.outbox.unanswered ?? 0;
  }

  /** Whether something destructive may begin now (R11). */
  isLeaseValid(): boolean {
    return this.#lease.isValid();
  }

  /** How long the lease is valid unless it is renewed, milliseconds. */
  leaseLeftMs(): number {
    return this.#lease.leftMs();
  }

  /** The stage of an operation; `unknown` when it was never received or is settled. */
  operationState(operationId: OperationId): 'unknown' | 'received' | 'begun' | 'ended' {
    const attempts = this.#running?.attempts;
    if (attempts !== undefined) return attempts.stateOf(operationId);
    // Runners may reconnect before the session starts.
    return this.#options.journal.state.operations.get(operationId)?.phase ?? 'unknown';
  }

  /** Publishes facts: the given fields replace earlier ones. Never acknowledged. */
  reportFacts(hostUid: HostUid, observations: ObservationsInit): void {
    const message = create(agent.ObservationsSchema, observations);
    this.#facts.publish(hostUid, message);
    if (this.#link.session === 0) return this.#facts.keepTrace(hostUid, message.bootTrace);
    this.#started().attempts.outbox.sendFacts(hostUid, message);
  }

  /** Reports an observation once. It is not kept, because it is polled again. */
  reportFactsOnce(hostUid: HostUid, observations: ObservationsInit): void {
    const message = create(agent.ObservationsSchema, observations);
    this.#started().attempts.outbox.sendFacts(hostUid, message);
  }

  reportPowerDigest(digest: agent.PowerDigest): void {
    this.#link.send({ case: 'powerDigest', value: digest });
  }

  /** Reports a machine that is no host. */
  reportDiscovered(finding: agent.Discovered): void {
    this.#link.send({ case: 'discovered', value: finding });
  }

  /** Reports the progress of an image into the cache. */
  reportPrefetched(image: agent.ImagePrefetched): void {
    this.#link.send({ case: 'imagePrefetched', value: image });
  }

  /** Reports the faults of the provisioning network. */
  reportNetworkFaults(faults: agent.NetworkFaults): void {
    this.#link.send({ case: 'networkFaults', value: faults });
  }

  /** Answers a read of a BMC; lost when no session is open any more. */
  reportBmcRead(read: agent.BmcRead): void {
    this.#link.send({ case: 'bmcRead', value: read });
  }

  /** A piece of a console's output; lost when no session is open. */
  reportConsole(output: agent.ConsoleOutput): void {
    this.#link.send({ case: 'consoleOutput', value: output });
  }

  /** The host's netboot, as the boot snapshot says. */
  netbootOf(hostUid: HostUid): agent.Deployment | undefined {
    return this.#snapshots.netboots.get(hostUid);
  }

  /** A secret in this version or a newer one, if it has arrived. */
  credential(name: string, version: bigint): Credential | undefined {
    return this.#credentials.find(name, version);
  }

  /** The stage of a step that takes its runner away. */
  handOffState(operationId: OperationId): HandOffState {
    const released = this.grants.all().some(({ handedOff }) => {
      return handedOff?.operationId === operationId;
    });
    if (released) return 'released';
    const attempts = this.#running?.attempts;
    if (attempts !== undefined) return attempts.isHandOffPending(operationId) ? 'pending' : 'none';
    const known = this.#options.journal.state.operations.get(operationId);
    if (known?.phase !== 'ended' || known.answered) return 'none';
    return handOffOf(known.operation, known.report) === undefined ? 'none' : 'pending';
  }

  /** A piece of a program's output; lost when no session is open. */
  reportStepLog(log: agent.StepLog): void {
    this.#link.send({ case: 'stepLog', value: log });
  }

  /** Whether an exclusive operation may still run on the host (R12). */
  isBusy(hostUid: HostUid): boolean {
    return this.#started().attempts.isBusy(hostUid);
  }

  /** The runner of this session is gone. Hello no longer lists it. */
  noteRunnerGone(...gone: Parameters<Facts['runnerGone']>): void {
    this.#facts.runnerGone(...gone);
  }

  /** Reports once for each boot, because a refused runner asks again and again. */
  reportRunnerRefused(hostUid: HostUid, bootOperationId: OperationId, message: string): void {
    if (this.#facts.refusedBoot(hostUid) === bootOperationId) return;
    this.reportFacts(hostUid, { runnerRefused: { bootOperationId, message } });
  }

  #hello(): MessageInitShape<typeof agent.HelloSchema> {
    const { journal, agentVersion } = this.#options;
    const { id, generation, life, earlierLives, store } = journal.state;
    const { attempts, executor } = this.#started();
    return {
      journal: { id, generation, life, earlierLives: [...earlierLives] },
      agentVersion,
      operationKinds: [...executor.operationKinds, 'cancel'],
      steps: [...(executor.steps ?? [])],
      operations: [...attempts.list()],
      runners: [...this.#facts.runners()],
      bmcReads: [...(this.#options.reads?.kinds ?? [])],
      watchesConsoles: this.#options.consoles !== undefined,
      ...storeInHello(this.#seen(), this.#refusal ?? store?.refusal),
      trustedCaSha256: [...(this.#options.trust?.trusted() ?? [])],
      grants: this.grants.active().map((grant) => ({
        operationId: grant.operationId,
        hostUid: grant.hostUid,
        expireTime: timestampFromMs(grant.expiresAtMs),
        bound: grant.publicKey !== undefined,
      })),
    };
  }

  /**
   * Whether heartbeats must be frequent: an operation is open, or a boot or a hand-off is awaited
   * whose deadline is judged only after this agent was heard.
   */
  #hasWork(): boolean {
    return this.#started().attempts.hasOpen() || this.grants.isAnyAwaited();
  }

  #handleWelcome(welcome: agent.Welcome): void {
    const { attempts, power } = this.#started();
    power?.sessionOpened();
    this.#credentials.noteContact();
    this.#refuseOrNot(welcome);
    this.#lease.reset(this.#refusal !== undefined);
    if (this.#incarnation !== welcome.incarnation) this.#startCredentialsOver();
    this.#incarnation = welcome.incarnation;
    this.#noteStore(welcome);
    attempts.direct(welcome.directives);
    for (const hostUid of welcome.forgetHostUids) this.#forget(hostUid);
    attempts.sendUnanswered();
    for (const [hostUid, observations] of this.#facts.all()) {
      attempts.outbox.sendFacts(hostUid, observations);
    }
    for (const [hostUid, bootTrace] of this.#facts.takeTraces()) {
      this.reportFacts(hostUid, { bootTrace });
    }
    this.#options.discovery?.sessionOpened();
    this.#options.prefetch?.sessionOpened();
    this.#options.consoles?.sessionOpened();
    this.#options.observer?.sessionOpened();
  }

  #handleMessage(message: agent.SessionResponse['message']): void {
    const { attempts } = this.#started();
    switch (message.case) {
      case 'operation':
        attempts.receive(message.value);
        return this.#link.workCame();
      case 'reportAnswer':
        return void attempts.outbox.answered(message.value);
      case 'leaseRenewal':
        return this.#handleRenewal(message.value);
      case 'credentialValue': {
        const { name, version, username, password } = message.value;
        return this.#credentials.keep({ name, version, username, password });
      }
      case 'bootSnapshot':
        return void this.#applySnapshot(message.value);
      case 'forget':
        return this.#forget(message.value.hostUid);
      case 'powerSync':
        return this.#setPowerSync(message.value);
      case 'storeAccepted':
        return this.#logFailure(this.#acceptStore(message.value));
      case 'trustBundle':
        return void this.#adoptTrust(message.value);
      case 'discovery':
      case 'discoveredAnswer':
      case 'prefetchImages':
      case 'readBmc':
      case 'watchConsole':
      case 'endConsole':
      case 'consoleTaken':
        return passToReceiver(this.#options, message);
      case 'welcome':
      case 'refused':
        // The link's own.
        return;
      case undefined:
        this.#options.log.warn({}, 'ignored a message of a kind that is not known here');
    }
  }

  #handleRenewal(renewal: agent.LeaseRenewal): void {
    const { heartbeatSequence, durationMs, revision } = renewal;
    this.#credentials.noteContact();
    if (revision > 0n) this.#noteStore({ incarnation: this.#incarnation, revision });
    this.#lease.renew(heartbeatSequence, durationMs, brakeOf(renewal));
  }

  /**
   * A store that has lost what this agent saw of it, or another store, gets no destructive work and
   * no boot list into force until a person accepts it (DESIGN §10), also when its revision grows.
   */
  #refuseOrNot(welcome: agent.Welcome): void {
    const { journal, log } = this.#options;
    const { store } = journal.state;
    const seen = this.#seen();
    const refusal = store?.refusal ?? storeRefusal(welcome, seen);
    const isKnown = refusal?.kind === this.#refusal?.kind;
    this.#refusal = refusal;
    if (isKnown || refusal === undefined || seen === undefined) return;
    const { incarnation } = welcome;
    log.error({ incarnation }, `${refusal.text}: nothing destructive will begin`);
    this.#logFailure(journal.append(storeSeen(seen, refusal)));
  }

  /** The list of hosts in force is of the store as well, perhaps a later one than was noted. */
  #seen(): KnownStorePosition | undefined {
    const { store } = this.#options.journal.state;
    if (store === undefined || store.refusal !== undefined) return store;
    const { incarnation, revision } = this.#snapshots.position;
    const isLater = incarnation === store.incarnation && revision > store.revision;
    return isLater ? { ...store, revision } : store;
  }

  /** From here on the agent works for this store; the next Hello says so and is answered anew. */
  async #acceptStore(store: agent.StoreAccepted): Promise<void> {
    const { incarnation, revision, lostRevisions, by } = store;
    const { journal, log } = this.#options;
    if (incarnation !== this.#incarnation) return;
    // Its list of hosts is the list, though an older store counts from further back.
    await this.#snapshots.startOver();
    this.#startCredentialsOver();
    const value = { incarnation, revision, lostRevisions, accepted: true };
    await journal.append({ case: 'storeSeen', value });
    this.#refusal = undefined;
    log.info({ incarnation, by }, 'the store was accepted');
    this.#link.redial('the store was accepted');
  }

  /** The versions of another store, or of an older copy, name other passwords. */
  #startCredentialsOver(): void {
    this.#credentials.startOver();
    this.#started().executor.credentialsStartedOver?.();
  }

  #noteStore({ incarnation, revision }: Pick<agent.Welcome, 'incarnation' | 'revision'>): void {
    const { journal } = this.#options;
    const { store } = journal.state;
    if (this.#refusal !== undefined) return;
    if (store?.incarnation === incarnation && revision <= store.revision) return;
    this.#logFailure(journal.append({ case: 'storeSeen', value: { incarnation, revision } }));
  }

  #logFailure(writing: Promise<unknown>): void {
    writing.catch((error: unknown) => {
      this.#options.log.error({}, 'what was seen of the store could not be written down', error);
    });
  }

  async #adoptTrust(bundle: agent.TrustBundle): Promise<void> {
    const { trust, log } = this.#options;
    if (trust === undefined) return;
    try {
      await trust.adopt(bundle);
    } catch (cause) {
      log.error({}, 'the certificate authorities stay as they were', cause);
    }
    // The answer names the authorities on the disk also after a failure: the control plane waits
    // for them to be stored.
    const trustedCaSha256 = [...trust.trusted()];
    const value = create(agent.TrustAppliedSchema, { trustedCaSha256 });
    this.#link.send({ case: 'trustApplied', value });
  }

  async #applySnapshot(snapshot: agent.BootSnapshot): Promise<void> {
    const { generation } = snapshot;
    // It may boot what an earlier tenant ran. The session after the acceptance brings it again.
    if (this.#refusal !== undefined) return;
    if (!(await this.#snapshots.apply(snapshot, this.#incarnation))) return;
    const value = create(agent.SnapshotAppliedSchema, { generation });
    this.#link.send({ case: 'snapshotApplied', value });
  }

  #setPowerSync(sync: agent.PowerSync): void {
    for (const { bmc, hostUid } of sync.hosts) {
      if (bmc !== undefined) this.#credentials.noteUse(bmc.credential, hostUid);
    }
    this.#started().power?.replace(sync);
  }

  /** Drops everything of a host, once, and reports it when nothing of it is left. */
  #forget(hostUid: HostUid): void {
    if (this.#forgetting.has(hostUid)) return;
    const forgetting = this.#forgetNow(hostUid)
      .catch((error: unknown) => {
        const text = 'the host is not forgotten yet; it will be asked again';
        this.#options.log.error({ host: hostUid }, text, error);
      })
      .finally(() => this.#forgetting.delete(hostUid));
    this.#forgetting.set(hostUid, forgetting);
  }

  async #forgetNow(hostUid: HostUid): Promise<void> {
    const { attempts, executor, power } = this.#started();
    power?.forgetHost(hostUid);
    const operationsGone = await attempts.forgetHost(hostUid);
    await this.grants.closeHost(hostUid);
    const snapshotForgot = await this.#snapshots.forgetHost(hostUid);
    this.#credentials.forgetHost(hostUid);
    this.#facts.forgetHost(hostUid);
    this.#options.observer?.hostForgotten(hostUid);
    await executor.forgetHost(hostUid);
    if (!operationsGone || !snapshotForgot) throw new Error('the disk did not take all of it');
    this.#options.log.info({ host: hostUid }, 'forgot the host');
    this.#options.crashPoint('agent.forgot');
    const value = create(agent.HostForgottenSchema, { hostUid });
    this.#link.send({ case: 'hostForgotten', value });
  }

  #started(): RunningParts {
    if (this.#running === undefined) throw new Error('the session has not been started');
    return this.#running;
  }
}
