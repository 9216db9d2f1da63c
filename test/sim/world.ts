/**
 * One simulated rack: the production control plane and agent on the simulated platform, machines
 * with disks, and faults that a seed decides. The same seed gives the same trace.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { AgentSession, Journal, type Transport } from '@rackwright/agent';
import { agent, HostSpecSchema, HostState, HostStatusSchema, store as wire } from '@rackwright/api';
import {
  createSessionRegistry,
  defaultSessionTiming,
  defaultTiming,
  Hosts,
  RackSession,
  reservedValues,
  type SessionDependencies,
} from '@rackwright/controlplane';
import type { Log } from '@rackwright/platform';
import {
  EventHeap,
  openLink,
  SimPlatters,
  SimProcess,
  seededRandom,
  simDisk,
} from '@rackwright/sim';
import { MemoryDisk, openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { agentPublicKey, simExecutor } from './executor.ts';
import { type DeviceEvent, type HardwareChance, SimMachine } from './hardware.ts';
import { Judge, type Violation } from './judge.ts';
import { answersEarly, type PlantedFault } from './planted.ts';
import { slowStore } from './slow-store.ts';
import { Trace } from './trace.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly hosts: number;
  /** A defect put in on purpose, that the judge must find. */
  readonly planted?: PlantedFault;
  /** Keep the last lines of the trace, for people. */
  readonly traceLines?: number;
}

export interface WorldResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly events: number;
  readonly simulatedMs: number;
  readonly crashes: number;
  /** Hash of everything that happened. */
  readonly traceHash: string;
  readonly trace: readonly string[];
}

/** Faults happen until here; then the rack must become stable. */
const faultsUntilMs = 15 * 60_000;
/** A rack that is not stable by now is stuck. */
const endMs = 24 * 3_600_000;
const wallStartMs = Date.UTC(2026, 0, 1);
const signer = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

const timing = Object.freeze({
  ...defaultTiming,
  goalFailuresMax: 1_000_000,
  interruptionsMax: 1_000,
});

/** Runs one world to its end. */
export async function runWorld(options: WorldOptions): Promise<WorldResult> {
  const world = new World(options);
  await world.prepare();
  await world.run();
  return world.result();
}

class World {
  readonly #options: WorldOptions;
  readonly #heap = new EventHeap();
  readonly #random;
  readonly #chance: HardwareChance;
  readonly #trace: Trace;
  #storeDisk = new MemoryDisk();
  #oldStoreDisk: MemoryDisk | undefined;
  readonly #platters = new SimPlatters();
  readonly #deviceLog: DeviceEvent[] = [];
  readonly #machines = new Map<string, SimMachine>();
  readonly #judge: Judge;
  readonly #lease = { untilMs: -1 };
  readonly #heartbeatSentAtMs = new Map<bigint, number>();
  #accept: ((connect: Connecting) => void) | undefined;
  #cut: (() => void) | undefined;
  #crashes = 0;
  #controlPlane: SimProcess | undefined;
  #agent: SimProcess | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
    const random = seededRandom(options.seed);
    this.#random = random;
    this.#chance = {
      around: (typicalMs) => Math.round(typicalMs * (0.5 + random.fraction())),
      happens: (probability) => this.#faulty() && random.fraction() < probability,
    };
    this.#trace = new Trace(options.traceLines ?? 0);
    for (let index = 1; index <= options.hosts; index++) this.#addMachine(index);
    this.#judge = new Judge(() => this.#storeDisk, this.#machines, this.#deviceLog, this.#lease);
  }

  #faulty(): boolean {
    return this.#heap.nowMs < faultsUntilMs;
  }

  #addMachine(index: number): void {
    const uid = `u${index}`;
    const lies = this.#options.planted === 'lyingDevice' && index === 1;
    const drives = [
      { serial: `D${index}A`, kind: 'overwrite' as const, hasData: true, lies },
      ...(this.#random.fraction() < 0.5
        ? [{ serial: `D${index}B`, kind: 'format' as const, hasData: true, lies: false }]
        : []),
    ];
    const guid = new Uint8Array(16).fill(index);
    const machine = new SimMachine(uid, guid, drives, this.#deviceLog, this.#heap, this.#chance);
    this.#machines.set(uid, machine);
  }

  /** Writes the rack, a credential and the hosts as the operators' API would. */
  async prepare(): Promise<void> {
    const store = await openMemoryStore({ random: this.#random, disk: this.#storeDisk });
    const put = (key: string, value: Uint8Array) => store.put(key, value, 'absent');
    const rack = { name: 'racks/r1' };
    await put(
      'racks.r1',
      toBinary(wire.RackRecordSchema, create(wire.RackRecordSchema, { rack, agentPublicKey })),
    );
    const credential = { name: 'credentials/c1', version: 1n };
    await put(
      'credentials.c1',
      toBinary(wire.CredentialRecordSchema, create(wire.CredentialRecordSchema, { credential })),
    );
    for (let index = 1; index <= this.#options.hosts; index++) await putHost(store, index);
  }

  async run(): Promise<void> {
    if (this.#options.planted === 'storeForgets') this.#forgetLater();
    this.#startControlPlane();
    this.#startAgent();
    this.#scheduleTrouble();
    const stop = () => {
      this.#judge.look(this.#heap.nowMs);
      if (this.#judge.violations.length > 0) return true;
      return !this.#faulty() && this.#isStable();
    };
    await this.#heap.run(endMs, stop);
    if (this.#judge.violations.length === 0) this.#judge.judgeEnd(this.#heap.nowMs);
  }

  result(): WorldResult {
    return {
      seed: this.#options.seed,
      violations: this.#judge.violations,
      events: this.#heap.taken,
      simulatedMs: this.#heap.nowMs,
      crashes: this.#crashes,
      traceHash: this.#trace.hash(),
      trace: this.#trace.last(),
    };
  }

  #isStable(): boolean {
    return this.#storeDisk.lastChanges('hosts').every((change) => {
      if (change.kind !== 'put') return true;
      const { host } = fromBinary(wire.HostRecordSchema, change.value);
      return host?.status?.state === HostState.AVAILABLE;
    });
  }

  #process(name: string, restart: () => void): SimProcess {
    const process = new SimProcess(name, this.#heap, wallStartMs, (point) => {
      const crash = this.#chance.happens(0.03);
      if (crash) this.#trace.line(this.#heap.nowMs, `${name} crashes at ${point}`);
      return crash;
    });
    process.whenKilled(() => {
      this.#crashes += 1;
      this.#cut?.();
      this.#heap.after(this.#chance.around(8_000), restart);
    });
    return process;
  }

  #log(name: string): Log {
    const write = (level: string) => (_fields: object, message: string) =>
      this.#trace.line(this.#heap.nowMs, `${name} ${level} ${message}`);
    const log: Log = {
      debug: () => {},
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: () => log,
    };
    return log;
  }

  #startControlPlane(): void {
    const process = this.#process('cp', () => this.#startControlPlane());
    this.#controlPlane = process;
    void this.#serve(process);
  }

  async #serve(process: SimProcess): Promise<void> {
    const inner = await openMemoryStore({ random: this.#random, disk: this.#storeDisk });
    const store = slowStore(inner, process, this.#chance);
    const shared = {
      store,
      random: this.#random,
      clock: process.clock,
      log: this.#log('cp'),
      crashPoint: process.crashPoint,
      replicaId: 'single',
    };
    const registry = createSessionRegistry();
    const hosts = new Hosts({
      ...shared,
      timing,
      registry,
      signStatement: (bytes) => sign('sha256', bytes, { key: signer, dsaEncoding: 'der' }),
      openCredential: () => ({ username: 'admin', password: 'secret' }),
      resyncIntervalMs: 60_000,
    });
    await hosts.start();
    if (!process.alive) return;
    const sessionHosts =
      this.#options.planted === 'answersEarly' ? answersEarly(hosts, process) : hosts;
    const deps = { ...shared, registry, hosts: sessionHosts, timing: defaultSessionTiming };
    this.#accept = (connecting) => this.#acceptSession(deps, process, connecting);
    process.whenKilled(() => {
      this.#accept = undefined;
      hosts.stop();
      if (this.#oldStoreDisk !== undefined) this.#storeDisk = this.#oldStoreDisk;
    });
  }

  /** The planted fault of a store that holds its last seconds in memory only. */
  #forgetLater(): void {
    this.#oldStoreDisk = this.#storeDisk.copy();
    this.#heap.after(1_000, () => this.#forgetLater());
  }

  #acceptSession(deps: SessionDependencies, process: SimProcess, connecting: Connecting): void {
    const session = new RackSession(deps, 'r1', {
      send: (message) => {
        if (!process.alive) return;
        if (message.case === 'leaseRenewal') this.#noteLease(message.value);
        connecting.send(create(agent.SessionResponseSchema, { message }));
      },
      end: () => connecting.close(),
    });
    let queue: Promise<unknown> = Promise.resolve();
    connecting.receive = (message) => {
      if (!process.alive) return;
      queue = queue
        .then(() => session.receive(message))
        .catch((error: unknown) => {
          this.#trace.line(this.#heap.nowMs, `cp session broke: ${String(error)}`);
          connecting.close();
        });
    };
    connecting.closed = () => process.alive && session.closed();
  }

  /** J6 counts a lease from when the answered heartbeat was sent. */
  #noteLease(renewal: agent.LeaseRenewal): void {
    const sentAtMs = this.#heartbeatSentAtMs.get(renewal.heartbeatSequence);
    if (sentAtMs === undefined) return;
    this.#lease.untilMs = Math.max(this.#lease.untilMs, sentAtMs + renewal.durationMs);
  }

  #startAgent(): void {
    const process = this.#process('agent', () => this.#startAgent());
    this.#agent = process;
    void this.#operate(process);
  }

  async #operate(process: SimProcess): Promise<void> {
    const disk = simDisk(this.#platters, process, {
      latencyMs: () => this.#chance.around(3),
      tornBytes: (length) => this.#random.below(length + 1),
      losesAcknowledged: () =>
        this.#options.planted === 'journalLosesWrites' && this.#random.fraction() < 0.2,
    });
    const shared = { disk, random: this.#random, log: this.#log('agent') };
    const journal = await Journal.open({ ...shared, path: '/journal', clock: process.clock });
    const clock =
      this.#options.planted === 'leaseNeverEnds'
        ? { ...process.clock, suspendAwareMs: () => 0 }
        : process.clock;
    const session = new AgentSession({
      ...shared,
      journal,
      snapshotPath: '/snapshot',
      clock,
      crashPoint: process.crashPoint,
      transport: this.#transport(process),
      agentVersion: 'sim',
    });
    const executor = simExecutor({
      machines: this.#machines,
      process,
      chance: this.#chance,
      session: () => session,
    });
    await session.start(executor);
  }

  #transport(process: SimProcess): Transport {
    return {
      connect: (handlers) => {
        const connecting: Connecting = { send: () => {}, close: () => {} };
        const link = openLink<agent.SessionRequest, agent.SessionResponse>(
          { heap: this.#heap, delayMs: () => this.#chance.around(20) },
          {
            onMessage: (message) => process.alive && handlers.onMessage(message),
            onClosed: () => process.alive && handlers.onClosed('the stream ended'),
          },
          {
            onMessage: (message) => connecting.receive?.(message),
            onClosed: () => connecting.closed?.(),
          },
        );
        this.#cut = () => link.cut();
        connecting.send = (message) => link.far.send(message);
        connecting.close = () => link.far.close();
        if (this.#accept === undefined) link.cut();
        else this.#accept(connecting);
        return {
          send: (message) => {
            if (!process.alive) return;
            this.#noteHeartbeat(message);
            link.near.send(message);
          },
          close: () => link.near.close(),
        };
      },
    };
  }

  #noteHeartbeat({ message }: agent.SessionRequest): void {
    if (message.case === 'hello') this.#heartbeatSentAtMs.clear();
    if (message.case !== 'heartbeat') return;
    this.#heartbeatSentAtMs.set(message.value.sequence, this.#heap.nowMs);
  }

  /** Cuts, kills and runner crashes at times that the seed chooses. */
  #scheduleTrouble(): void {
    this.#heap.after(this.#chance.around(30_000), () => {
      if (!this.#faulty()) return;
      const machines = [...this.#machines.values()];
      const machine = machines[this.#random.below(machines.length)];
      const trouble = this.#random.below(5);
      this.#trace.line(this.#heap.nowMs, `trouble ${trouble}`);
      if (trouble === 0) this.#cut?.();
      if (trouble === 1) this.#agent?.kill();
      if (trouble === 2) this.#controlPlane?.kill();
      if (trouble === 3) machine?.crashRunner();
      if (trouble === 4) this.#partition();
      this.#scheduleTrouble();
    });
  }

  /** For a while nobody is let in. */
  #partition(): void {
    const accept = this.#accept;
    const controlPlane = this.#controlPlane;
    this.#accept = undefined;
    this.#cut?.();
    this.#heap.after(this.#chance.around(40_000), () => {
      if (controlPlane?.alive === true && this.#accept === undefined) this.#accept = accept;
    });
  }
}

/** The control plane's end of a stream that an agent opens. */
interface Connecting {
  send: (message: agent.SessionResponse) => void;
  close: () => void;
  receive?: (message: agent.SessionRequest) => void;
  closed?: () => void;
}

async function putHost(store: StateStore, index: number): Promise<void> {
  const name = `hosts/h${index}`;
  const spec = create(HostSpecSchema, {
    rack: 'racks/r1',
    bmc: { address: `10.0.0.${index}`, credential: 'credentials/c1' },
    bootMacs: [`52:54:00:00:00:0${index}`],
  });
  const status = create(HostStatusSchema, { state: HostState.NEW, dirty: true, useEpoch: 1n });
  const record = create(wire.HostRecordSchema, { host: { name, uid: `u${index}`, spec, status } });
  const held = { holder: name, holderUid: `u${index}` };
  const reservation = toBinary(wire.ReservationSchema, create(wire.ReservationSchema, held));
  for (const { key } of reservedValues(spec)) await store.put(key, reservation, 'absent');
  const value = toBinary(wire.HostRecordSchema, record);
  await store.put(storeKey('hosts', `h${index}`), value, 'absent');
}
