/**
 * One replica of the production control plane as a simulated process: host loop, session registry,
 * and the far end of the streams that agents open.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import {
  type AgentService,
  createAgentService,
  createHost,
  createSessionRegistry,
  createWebhookCaller,
  createWorkflowParts,
  Discovery,
  defaultSessionTiming,
  defaultTiming,
  FleetView,
  freezeShared,
  Hosts,
  Pools,
  resolveWith,
  StoreFollower,
} from '@rackwright/controlplane';
import {
  ApiFailure,
  actors,
  agent,
  asReplicaId,
  type CallContext,
  type OperationId,
} from '@rackwright/messages';
import type { SimProcess } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { Inbox } from './inbox.ts';
import { simSecrets } from './operators/secrets.ts';
import { simResolve } from './pools/registry.ts';
import { type StoreReach, slowStore } from './slow-store.ts';
import type { StoreBox } from './store-box.ts';
import type { Replica, WorldView } from './view.ts';
import { simHooks } from './workflows/hooks.ts';
import type { WorkEvent } from './workflows/programs.ts';

const signer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** What certificates are verified against. */
export const erasureKey = signer.publicKey;

/** Fewer heartbeats than usual, for speed; the lease lasts for three of them as always. */
const sessionTiming = { ...defaultSessionTiming, heartbeatIntervalMs: 5_000 };

/** The control plane's end of a stream that an agent opens. */
export interface AgentStream {
  readonly send: (message: agent.SessionResponse) => void;
  readonly close: () => void;
  receive: (message: agent.SessionRequest) => void;
  closed: () => void;
}

export interface ReplicaOptions {
  readonly name: string;
  readonly storage: StoreBox;
  /** How this replica reaches the store now. */
  readonly reach: StoreReach;
  /** Told of each work lease that is granted on a stream. */
  readonly onLease: (stream: AgentStream, renewal: agent.LeaseRenewal) => void;
  /** Told of each operation whose report has been answered `applied`. */
  readonly onApplied: (operationId: OperationId) => void;
  /** The log of the server that webhooks call. */
  readonly onCalled: (event: WorkEvent) => void;
}

export class ControlPlaneReplica {
  readonly name: string;
  readonly #view: WorldView;
  readonly #options: ReplicaOptions;
  #live: Replica | undefined;
  #process: SimProcess | undefined;
  #agents: AgentService | undefined;
  readonly #streams = new Set<AgentStream>();

  constructor(view: WorldView, options: ReplicaOptions) {
    this.name = options.name;
    this.#view = view;
    this.#options = options;
  }

  /** Undefined until it has started, and after it died. */
  get live(): Replica | undefined {
    return this.#live;
  }

  kill(): void {
    this.#process?.kill();
  }

  suspend(durationMs: number): void {
    this.#process?.suspend(durationMs);
  }

  start(): void {
    const process = this.#view.makeProcess(this.name);
    this.#process = process;
    process.whenKilled(() => {
      this.#live = undefined;
      this.#options.storage.controlPlaneDied();
      for (const stream of this.#streams) stream.close();
      this.#streams.clear();
      this.#view.heap.after(this.#view.chance.around(8_000), () => this.start());
    });
    this.#serve(process).catch((error: unknown) => {
      this.#view.trace(`${this.name} did not start: ${String(error)}`);
      process.kill();
    });
  }

  async #serve(process: SimProcess): Promise<void> {
    const { random, chance } = this.#view;
    const { storage, reach } = this.#options;
    const restored = storage.opening();
    const inner = await openMemoryStore({ random, disk: storage.disk, restored });
    const store = slowStore(inner, process, chance, reach, random);
    const shared = {
      ...{ store, random },
      clock: process.clock,
      log: this.#view.log(this.name),
      crashPoint: process.crashPoint,
      replicaId: asReplicaId(this.name),
    };
    const registry = createSessionRegistry();
    const web = simHooks(this.#view, process, this.#options.onCalled);
    const callWebhook = createWebhookCaller({ ...shared, web });
    const { retryDelayMs } = defaultTiming;
    const following = new StoreFollower({ ...shared, retryDelayMs });
    process.whenKilled(() => following.stop());
    const fleetView = new FleetView({ ...shared, retryDelayMs });
    process.whenKilled(() => fleetView.stop());
    // Whoever changes what all share fails.
    freezeShared(store);
    const hosts = new Hosts({
      ...{ ...shared, following, fleetView },
      ...{ timing: defaultTiming, registry },
      signStatement: (bytes) => sign('sha256', bytes, { key: signer.privateKey }),
      openCredential: (record) => simSecrets(random).open(record),
      resyncIntervalMs: 60_000,
      ...(this.#view.workflows ? { callWebhook } : {}),
    });
    process.whenKilled(() => hosts.stop());
    await hosts.start();
    if (!process.alive) return;
    const timed = {
      ...shared,
      following,
      fleetView,
      hosts,
      retryDelayMs,
      resyncIntervalMs: 60_000,
    };
    const parts = this.#view.workflows ? createWorkflowParts(timed) : undefined;
    process.whenKilled(() => parts?.stop());
    await parts?.start();
    if (!process.alive) return;
    const discovery = this.#view.discovery
      ? new Discovery({
          ...{ ...shared, fleetView, resyncIntervalMs: 60_000 },
          createHost: (request, from) =>
            createHost({ ...shared, hosts, actor: actors.system }, request, from),
          reportHost: (hostId, report) => hosts.report(hostId, report),
        })
      : undefined;
    process.whenKilled(() => discovery?.stop());
    discovery?.start();
    const resolve = resolveWith(simResolve(this.#view, process));
    const pools = this.#view.pools ? new Pools({ ...timed, resolve, callWebhook }) : undefined;
    process.whenKilled(() => pools?.stop());
    await pools?.start();
    if (!process.alive) return;
    const agents = createAgentService({
      ...{ ...shared, fleetView, registry, hosts, timing: sessionTiming },
      ...(discovery === undefined ? {} : { discovery }),
      identify: async () => 'r1',
    });
    const { name } = this;
    this.#live = { name, process, hosts, fleetView, store, parts, discovery, pools };
    this.#agents = agents;
  }

  /** Takes a stream of the rack's agent. False when nobody listens. */
  accept(stream: AgentStream): boolean {
    const live = this.#live;
    if (live === undefined || this.#agents === undefined) return false;
    const { process } = live;
    this.#streams.add(stream);
    const requests = new Inbox<agent.SessionRequest>();
    const over = new AbortController();
    stream.receive = (message) => process.enter(() => requests.push(message));
    stream.closed = () => {
      this.#streams.delete(stream);
      process.enter(() => {
        over.abort();
        requests.end();
      });
    };
    void this.#answer(process, stream, this.#agents.session(requests, callOf(over.signal)));
    return true;
  }

  #noteAnswer({ operationId, verdict }: agent.ReportAnswer): void {
    if (verdict === agent.ReportAnswer_Verdict.APPLIED) this.#options.onApplied(operationId);
  }

  async #answer(
    process: SimProcess,
    stream: AgentStream,
    answers: AsyncIterable<{ message: agent.SessionResponse['message'] }>,
  ): Promise<void> {
    try {
      for await (const { message } of answers) {
        if (!process.alive) return;
        if (message.case === 'leaseRenewal') this.#options.onLease(stream, message.value);
        if (message.case === 'reportAnswer') this.#noteAnswer(message.value);
        stream.send(create(agent.SessionResponseSchema, { message }));
      }
    } catch (error) {
      // To the agent a refusal is the end of its stream, as it is by gRPC.
      if (!(error instanceof ApiFailure)) throw error;
    }
    stream.close();
  }
}

function callOf(signal: AbortSignal): CallContext {
  return {
    method: '/rackwright.agent.v1.AgentService/Session',
    header: () => undefined,
    peerAddress: 'the rack',
    peerCertificate: () => undefined,
    signal,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
}
