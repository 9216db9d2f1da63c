/**
 * Control planes without sockets: production hosts loop, rack sessions and store contract on
 * simulated time, any number of replicas over one store. The agent's side is spoken by the test.
 */
import { createHash } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { quietLog } from '@rackwright/agent/testing';
import {
  createSessionRegistry,
  defaultSessionTiming,
  defaultTiming,
  FleetView,
  freezeShared,
  Hosts,
  RackSession,
  reservedValues,
  type SessionDependencies,
  StoreFollower,
  sharedBySessions,
} from '@rackwright/controlplane';
import {
  agent,
  asReplicaId,
  type HostId,
  HostSpecSchema,
  HostState,
  HostStatusSchema,
  type HostUid,
  store as wire,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import {
  type MemoryCall,
  MemoryDisk,
  type MemoryFault,
  openMemoryStore,
  type StateStore,
  storeKey,
} from '@rackwright/store';

const wallStartMs = Date.UTC(2026, 0, 1);
/** Any 32 bytes: nothing of these scenarios is certified. */
const agentPublicKey = new Uint8Array(32).fill(1);

/** Says what becomes of a call of the store. */
export type FaultOf = (call: MemoryCall) => MemoryFault | Promise<MemoryFault>;

export interface SiteOptions {
  readonly hosts: number;
  readonly resyncIntervalMs?: number;
  /** False: nobody has ever joined the rack. */
  readonly agentRegistered?: boolean;
}

/** One rack's store and time. */
export class Site {
  readonly heap = new EventHeap();
  readonly disk = new MemoryDisk();
  readonly random = seededRandom(1);
  readonly resyncIntervalMs: number;
  readonly #options: SiteOptions;

  private constructor(options: SiteOptions) {
    this.#options = options;
    this.resyncIntervalMs = options.resyncIntervalMs ?? 60_000;
  }

  /** Rack r1, credential c1 and hosts h1, h2, … as the operators' API would write them. */
  static async open(options: SiteOptions): Promise<Site> {
    const site = new Site(options);
    const { agentRegistered = true } = options;
    await site.put(
      'racks.r1',
      toBinary(
        wire.RackRecordSchema,
        create(wire.RackRecordSchema, {
          rack: { name: 'racks/r1' },
          ...(agentRegistered ? { agentPublicKey } : {}),
        }),
      ),
    );
    await site.putCredential(1n);
    for (let index = 1; index <= options.hosts; index++) await site.#putHost(index);
    return site;
  }

  async putCredential(version: bigint): Promise<void> {
    const credential = { name: 'credentials/c1', version };
    const record = create(wire.CredentialRecordSchema, { credential });
    await this.put('credentials.c1', toBinary(wire.CredentialRecordSchema, record));
  }

  /** Writes as another writer would: over what stands there. */
  async put(key: string, value: Uint8Array): Promise<void> {
    const store = await openMemoryStore({ random: this.random, disk: this.disk });
    const kept = this.disk.changesOf(key).at(-1);
    const written = await store.put(key, value, kept?.kind === 'put' ? kept.revision : 'absent');
    if (written.kind !== 'ok') throw new Error(`${key}: ${written.kind}`);
  }

  /** A host's record; undefined when it is gone. */
  record(hostId: HostId): wire.HostRecord | undefined {
    const change = this.disk.changesOf(`hosts.${hostId}`).at(-1);
    return change?.kind === 'put' ? fromBinary(wire.HostRecordSchema, change.value) : undefined;
  }

  async putRecord(hostId: HostId, record: wire.HostRecord): Promise<void> {
    await this.put(`hosts.${hostId}`, toBinary(wire.HostRecordSchema, record));
  }

  hostIds(): HostId[] {
    return Array.from({ length: this.#options.hosts }, (_, index) => `h${index + 1}`);
  }

  run(durationMs: number): Promise<void> {
    return this.heap.run(this.heap.nowMs + durationMs, () => false);
  }

  async #putHost(index: number): Promise<void> {
    const name = `hosts/h${index}`;
    const mac = [52, 54, 0, 0, index >> 8, index & 255];
    const spec = create(HostSpecSchema, {
      rack: 'racks/r1',
      bmc: { address: `10.0.${index >> 8}.${index & 255}`, credential: 'credentials/c1' },
      bootMacs: [mac.map((byte) => byte.toString(16).padStart(2, '0')).join(':')],
    });
    const status = create(HostStatusSchema, { state: HostState.NEW, dirty: true, useEpoch: 1n });
    const uid = `u${index}`;
    const held = toBinary(
      wire.ReservationSchema,
      create(wire.ReservationSchema, { holder: name, holderUid: uid }),
    );
    for (const { key } of reservedValues(spec)) await this.put(key, held);
    const record = create(wire.HostRecordSchema, { host: { name, uid, spec, status } });
    await this.put(storeKey('hosts', `h${index}`), toBinary(wire.HostRecordSchema, record));
  }
}

interface Sessions extends SessionDependencies {
  readonly fleetView: FleetView;
}

/** One control plane process, and the agent's stream to it. */
export class Replica {
  readonly hosts: Hosts;
  /** What this replica told agents, in order, over all sessions. */
  readonly told: agent.SessionResponse['message'][] = [];
  /** What it asked of the store. */
  readonly storeCalls: MemoryCall[];
  /** The store as this replica reaches it. */
  readonly store: StateStore;
  readonly clock: Clock;
  readonly following: StoreFollower;
  readonly #process: SimProcess;
  readonly #sessions: Sessions;
  #session: RackSession | undefined;
  #sequence = 0n;
  #heartbeats = 0n;

  private constructor(
    process: SimProcess,
    sessions: Sessions,
    storeCalls: MemoryCall[],
    following: StoreFollower,
  ) {
    this.#process = process;
    this.#sessions = sessions;
    this.hosts = sessions.hosts;
    this.store = sessions.store;
    this.clock = sessions.clock;
    this.storeCalls = storeCalls;
    this.following = following;
  }

  /** `faultOf` says what becomes of each call of the store. */
  static async start(
    site: Site,
    replicaId: string,
    faultOf: FaultOf = () => ({ kind: 'none' }),
  ): Promise<Replica> {
    const storeCalls: MemoryCall[] = [];
    const { random, disk, heap, resyncIntervalMs } = site;
    const store = await openMemoryStore({
      random,
      disk,
      faults: (call) => {
        storeCalls.push(call);
        return faultOf(call);
      },
    });
    const process = new SimProcess(replicaId, heap, wallStartMs, () => false);
    const { clock, crashPoint } = process;
    const parts = { store, random, clock, crashPoint, log: quietLog };
    const shared = { ...parts, replicaId: asReplicaId(replicaId) };
    freezeShared(store);
    const { retryDelayMs } = defaultTiming;
    const following = new StoreFollower({ ...shared, retryDelayMs });
    const fleetView = new FleetView({ ...shared, retryDelayMs });
    const registry = createSessionRegistry();
    const hosts = new Hosts({
      ...{ ...shared, following, fleetView },
      registry,
      timing: defaultTiming,
      resyncIntervalMs,
      signStatement: () => new Uint8Array(),
      openCredential: () => ({ username: 'admin', password: 'secret' }),
    });
    // The view of many hosts is built in pages, between which the clock has its turn.
    const started = hosts.start();
    await site.run(0);
    await started;
    const sessions = { ...shared, fleetView, registry, hosts, timing: defaultSessionTiming };
    return new Replica(process, sessions, storeCalls, following);
  }

  /** The process dies: nothing of it is heard or written any more. */
  kill(): void {
    this.#session?.closed();
    this.#session = undefined;
    this.#process.kill();
    this.hosts.stop();
    this.#sessions.fleetView.stop();
    this.following.stop();
  }

  get fleetView(): FleetView {
    return this.#sessions.fleetView;
  }

  /** The agent's Hello on a new stream. */
  async hello(
    operations: agent.JournalledOperation[] = [],
    steps: agent.StepDescription[] = [],
    generation = 1n,
  ): Promise<void> {
    this.cut();
    this.#heartbeats = 0n;
    this.#session = new RackSession(this.#sessions, sharedBySessions(this.#sessions), 'r1', {
      send: (message) => void this.told.push(message),
      end: () => undefined,
    });
    const journal = create(agent.JournalSchema, { id: 'j1', generation });
    const operationKinds = ['verifyAccess', 'setPower', 'inspect', 'runStep', 'cancel'];
    const named = { agentVersion: 'test', operationKinds };
    const value = create(agent.HelloSchema, { journal, ...named, operations, steps });
    await this.#receive({ case: 'hello', value });
  }

  /** The stream breaks. */
  cut(): void {
    this.#session?.closed();
    this.#session = undefined;
  }

  /** A final report of the agent. */
  async report(operation: agent.Operation, result: agent.Report['result']): Promise<void> {
    this.#sequence += 1n;
    const { id: operationId, hostUid } = operation;
    const fields = { sequence: this.#sequence, operationId, hostUid, result };
    await this.#receive({ case: 'report', value: create(agent.ReportSchema, fields) });
  }

  /** The agent says that it is there. */
  async heartbeat(): Promise<void> {
    this.#heartbeats += 1n;
    const value = create(agent.HeartbeatSchema, { sequence: this.#heartbeats });
    if (this.#session !== undefined) await this.#receive({ case: 'heartbeat', value });
  }

  async forgotten(hostUid: HostUid): Promise<void> {
    const value = create(agent.HostForgottenSchema, { hostUid });
    await this.#receive({ case: 'hostForgotten', value });
  }

  /** Operations that were sent, in order. */
  operations(): agent.Operation[] {
    return this.told.flatMap((message) => (message.case === 'operation' ? [message.value] : []));
  }

  verdicts(): (agent.ReportAnswer_Verdict | undefined)[] {
    return this.told.flatMap((message) =>
      message.case === 'reportAnswer' ? [message.value.verdict] : [],
    );
  }

  async #receive(message: agent.SessionRequest['message']): Promise<void> {
    if (this.#session === undefined) throw new Error('the agent is not connected here');
    await this.#session.receive(create(agent.SessionRequestSchema, { message }));
  }
}

/** What a verify brings: each host its own BMC. */
export function verifiedAs(hostUid: HostUid): agent.Report['result'] {
  const guid = createHash('sha256').update(hostUid).digest().subarray(0, 16);
  const observations = { bmcIdentity: { guid, serial: hostUid } };
  return { case: 'complete', value: create(agent.CompleteSchema, { observations }) };
}
