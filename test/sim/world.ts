/**
 * One simulated rack: the production control plane, agent and runner on the simulated platform,
 * machines with BMCs and disks, and faults that a seed decides. The same seed gives the same trace.
 */
import { create } from '@bufbuild/protobuf';
import { agent, HostGoal, HostState, RunPhase, type store as wire } from '@rackwright/messages';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { bmcPassword } from './bmc.ts';
import { makeChance } from './chance.ts';
import { type AgentStream, ControlPlaneReplica } from './control-plane.ts';
import { crashChanceAt } from './crash-chance.ts';
import { DiscoveryPeople, makeStranger } from './discovery/people.ts';
import { soundDrive } from './drives.ts';
import { watchFleetViews } from './fleet-views.ts';
import { bmcAddress, putCredential, putFleet, putHost, putRack } from './furnish.ts';
import { Judge, type Violation } from './judge.ts';
import { type MachineLogs, SimMachine } from './machine.ts';
import { Operators } from './operators/operators.ts';
import { startPerson } from './person.ts';
import type { PlantedFault } from './planted.ts';
import { PoolPeople } from './pools/people.ts';
import { poolWorld } from './pools/world.ts';
import { AgentBox } from './rack-agent.ts';
import type { StoreReach } from './slow-store.ts';
import { StoreBox } from './store-box.ts';
import { Trace } from './trace.ts';
import { scheduleTrouble, type Victims } from './trouble.ts';
import type { WorldView } from './view.ts';
import { ownStepsOf } from './workflows/own-steps.ts';
import { startAuthors } from './workflows/people.ts';
import { TemplateBook } from './workflows/recipes.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly hosts: number;
  /** A defect put in on purpose, that the judge must find. */
  readonly planted?: PlantedFault;
  /** Whether people do random things by the API; unset: in every second seed. */
  readonly operators?: boolean;
  /** Whether people write templates and run workflows; unset: in every third seed. */
  readonly workflows?: boolean;
  /** Whether machines netboot that nobody knows; unset: in every seventh seed. */
  readonly discovery?: boolean;
  /** Whether they also run them on many hosts at once; unset: in about a quarter of those. */
  readonly batches?: boolean;
  /** Whether there are pools of hosts; unset: in every eleventh seed. */
  readonly pools?: boolean;
  /** Whether fleet views are compared with the store; unset: in every fifth seed. */
  readonly views?: boolean;
  /** The first disk of the first machine loses its wipes with the power; unset: by weather. */
  readonly forgetfulDisk?: boolean;
  /** Keep the last lines of the trace, for people. */
  readonly traceLines?: number;
}

export interface WorldResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly events: number;
  readonly simulatedMs: number;
  readonly crashes: number;
  readonly figures: ReadonlyMap<string, number>;
  /** Hash of everything that happened. */
  readonly traceHash: string;
  readonly trace: readonly string[];
}

/** A rack that is not stable so long after the faults is stuck. */
const settleMs = 3 * 3_600_000;
/**
 * Where batches wait for one host after another, each until it is timed out; and where a machine
 * that booted from a card of nobody waits for the deadline of its step, as `explain` says.
 */
const settleLongMs = 8 * 3_600_000;
/** How often something goes wrong, and for how long things go wrong, milliseconds. */
const troubleEveryMs = [6_000, 15_000, 30_000] as const;
const faultsForMs = [120_000, 150_000, 200_000, 400_000] as const;
/** How much longer where people run workflows. */
const workflowsForMs = 120_000;
/** How much longer where there are pools, whose hosts have to become available first. */
const poolsForMs = 400_000;
/** Hosts more where a batch is to find several. */
const hostsMoreMax = 2;
/** Machines that nobody knows, at most, and the number of the one that disguises itself. */
const strangersMax = 3;
const chameleonIndex = 90;
/** What batches are made of, and what machines that nobody knows become hosts by. */
const batchKeys = ['workflowBatches', 'workflows'];
const discoveryKeys = ['discoveredMachines', 'expectedHosts', 'reservations', 'facts'];
const poolKeys = ['pools', 'deployments'];
/** Lease renewals after which an earlier one has surely been taken in. */
const renewalsUntilSeen = 3;
/** Copies of the agent's disk are taken this often, for rolling it back. */
const backupEveryMs = 40_000;

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
  readonly #trace: Trace;
  readonly #figures = new Map<string, number>();
  readonly #view: WorldView;
  readonly #faultsUntilMs: number;
  readonly #storage = new StoreBox();
  readonly #logs: MachineLogs = { power: [], drives: [], steps: [], work: [], images: [] };
  readonly #machines = new Map<string, SimMachine>();
  /** BMC address → machine, as the cables are now. */
  readonly #cables = new Map<string, SimMachine>();
  readonly #judge: Judge;
  /** Undefined: one person keeps the rack going. */
  readonly #operators: Operators | undefined;
  readonly #hosts: number;
  readonly #strangers: SimMachine[] = [];
  readonly #discoverers: DiscoveryPeople | undefined;
  readonly #poolPeople: PoolPeople | undefined;
  readonly #replicas: ControlPlaneReplica[] = [];
  readonly #reaches: StoreReach[] = [];
  readonly #boxes: AgentBox[] = [];
  readonly #heartbeats = new Map<AgentStream, Map<bigint, number>>();
  #leaseUntilMs = -1;
  /** The store's revision that the agent has surely written down; NaN: it may have forgotten. */
  #seenRevision = 0;
  /** Those of the last lease renewals: they may have been lost on the way. */
  readonly #renewals: number[] = [];
  #crashes = 0;
  #backup: ReadonlyMap<string, Uint8Array> | undefined;
  #judgedStable = -1;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#trace = new Trace(options.traceLines ?? 0);
    const random = seededRandom(options.seed);
    const chance = makeChance(random, () => this.#faulty());
    this.#view = this.#makeView(random, chance);
    const isLarge = this.#view.batches || this.#view.pools;
    this.#hosts = options.hosts + (isLarge ? 1 + random.below(hostsMoreMax) : 0);
    const poolsMs = this.#view.pools ? poolsForMs : 0;
    const longerMs = (this.#view.workflows ? workflowsForMs : 0) + poolsMs;
    this.#faultsUntilMs = chance.around(chance.pick(faultsForMs)) + longerMs;
    for (let index = 1; index <= this.#hosts; index++) this.#addMachine(index);
    if (this.#view.discovery) this.#addStrangers(this.#hosts);
    this.#judge = new Judge({
      view: this.#view,
      logs: this.#logs,
      machines: this.#machines,
      leaseUntilMs: () => this.#leaseUntilMs,
    });
    // Who keeps pools going has enough to do.
    const withOperators = options.operators ?? (options.seed % 2 === 1 && !this.#view.pools);
    if (withOperators) this.#operators = new Operators(this.#view);
    if (this.#view.discovery) this.#discoverers = this.#makeDiscoverers();
    if (this.#view.pools) this.#poolPeople = new PoolPeople(this.#view);
    const replicas = random.fraction() < 0.35 ? 2 : 1;
    for (let index = 1; index <= replicas; index++) this.#addReplica(`cp${index}`);
    this.#boxes.push(this.#makeBox('agent'));
  }

  #makeView(random: WorldView['random'], chance: WorldView['chance']): WorldView {
    const { seed, workflows = seed % 3 === 0, pools = seed % 11 === 5 } = this.#options;
    const view: WorldView = {
      ...{ heap: this.#heap, seed },
      random,
      chance,
      planted: this.#options.planted,
      workflows,
      batches: workflows && (this.#options.batches ?? Math.floor(seed / 6) % 4 === 0),
      pools,
      ...poolWorld(seed, pools),
      book: new TemplateBook(),
      discovery: this.#options.discovery ?? seed % 7 === 2,
      strangers: () => this.#strangers,
      discoveryBoot: (live, mac, id) => this.#judge.discovery.opened(live, mac, id),
      machines: this.#machines,
      storeDisk: () => this.#storage.disk,
      replicas: () => this.#replicas.flatMap(({ live }) => (live === undefined ? [] : [live])),
      agents: () => this.#boxes.flatMap(({ live }) => (live === undefined ? [] : [live])),
      faulty: () => this.#faulty(),
      trace: (text) => this.#trace.line(this.#heap.nowMs, text),
      count: (what) => void this.#figures.set(what, (this.#figures.get(what) ?? 0) + 1),
      log: (name) => this.#trace.log(name, () => this.#heap.nowMs),
      found: (rule, text) => this.#judge.found(rule, text),
      makeProcess: (name, wallNowMs) => this.#makeProcess(name, wallNowMs),
    };
    return view;
  }

  #faulty(): boolean {
    return this.#heap.nowMs < this.#faultsUntilMs;
  }

  #makeProcess(name: string, wallNowMs?: () => number): SimProcess {
    const process = new SimProcess(
      name,
      this.#heap,
      wallNowMs ?? this.#view.wallStartMs,
      (point) => {
        const crash = this.#view.chance.happens(crashChanceAt(point));
        if (crash) {
          this.#view.trace(`${name} crashes at ${point}`);
          this.#view.count(`crash at ${point}`);
        }
        return crash;
      },
    );
    process.whenKilled(() => {
      this.#crashes += 1;
      if (this.#boxes.some((box) => box.name === name)) this.#judge.pools.agentDied();
    });
    return process;
  }

  #addMachine(index: number): void {
    const { random, planted } = this.#view;
    const machine = new SimMachine(this.#view, this.#logs, index, this.#view.wallStartMs);
    const hides = planted === 'hidingDevice' && index === 1;
    const forgets = this.#options.forgetfulDisk === true && index === 1;
    const wipe = forgets ? 'lostAtPowerOff' : 'none';
    machine.addDrive({ ...soundDrive(`D${index}A`, 'sata'), hides, wipe }, true);
    if (random.fraction() < 0.5) machine.addDrive(soundDrive(`D${index}B`, 'nvme'), true);
    machine.flashable = random.fraction() < 0.3;
    this.#machines.set(machine.name, machine);
    this.#cables.set(bmcAddress(index), machine);
  }

  /** Machines beside the hosts, that nobody knows. */
  #addStrangers(hosts: number): void {
    const count = 1 + this.#view.random.below(strangersMax);
    for (let index = hosts + 1; index <= hosts + count; index++) {
      this.#addMachine(index);
      const machine = this.#machines.get(`m${index}`);
      if (machine === undefined) continue;
      makeStranger(machine, this.#view);
      this.#strangers.push(machine);
    }
  }

  #makeDiscoverers(): DiscoveryPeople {
    const isThere = this.#view.random.fraction() < 0.3;
    // No cable leads to its BMC, and nobody accepts it.
    const chameleon = new SimMachine(
      this.#view,
      this.#logs,
      chameleonIndex,
      this.#view.wallStartMs,
    );
    chameleon.addDrive(soundDrive('DX', 'sata'), true);
    return new DiscoveryPeople(this.#view, isThere ? chameleon : undefined);
  }

  #addReplica(name: string): void {
    const reach: StoreReach = {
      awayUntilMs: 0,
      count: this.#view.count,
      nowMs: () => this.#heap.nowMs,
      crashesAfter: [
        ...(this.#view.discovery ? discoveryKeys : []),
        ...(this.#view.batches ? batchKeys : []),
        ...(this.#view.pools ? poolKeys : []),
      ],
      acknowledged: (write) => this.#judge.acknowledged(write),
    };
    this.#reaches.push(reach);
    const replica = new ControlPlaneReplica(this.#view, {
      name,
      reach,
      storage: this.#storage,
      onLease: (stream, renewal) => this.#noteLease(stream, renewal),
      onApplied: (operationId) => this.#judge.applied(operationId),
      onCalled: (event) => void this.#logs.work.push(event),
    });
    this.#replicas.push(replica);
  }

  #makeBox(name: string): AgentBox {
    return new AgentBox(
      this.#view,
      {
        name,
        bmcs: { at: (address) => this.#cables.get(address)?.bmc },
        dial: () => this.#reachable(),
        onHeartbeat: (_box, stream, sequence) => {
          const sent = this.#heartbeats.get(stream) ?? new Map<bigint, number>();
          sent.set(sequence, this.#heap.nowMs);
          this.#heartbeats.set(stream, sent);
        },
        onUp: (message, deliver) => this.#hostile(message, deliver),
      },
      this.#view.wallStartMs,
    );
  }

  /** The control plane that a dialling agent meets. */
  #reachable(): ControlPlaneReplica | undefined {
    const up = this.#replicas.filter(({ live }) => live !== undefined);
    return up.length === 0 ? undefined : this.#view.chance.pick(up);
  }

  /**
   * What gRPC never does within a stream, a hostile or broken peer may: a report comes twice, or
   * once more when everything has moved on. It asks for no answer.
   */
  #hostile({ message }: agent.SessionRequest, deliver: AgentStream['receive']): void {
    if (message.case !== 'report' || message.value.operationId === '') return;
    this.#judge.proof.reported(message.value);
    const { chance, heap } = this.#view;
    if (!chance.happens(0.05)) return;
    const value = { ...message.value, sequence: 0n };
    const copy = create(agent.SessionRequestSchema, { message: { case: 'report', value } });
    this.#view.count('report delivered again');
    heap.after(chance.around(chance.pick([100, 5_000, 60_000])), () => deliver(copy));
  }

  /** J6 counts a lease from when the answered heartbeat was sent. */
  #noteLease(stream: AgentStream, renewal: agent.LeaseRenewal): void {
    const sentAtMs = this.#heartbeats.get(stream)?.get(renewal.heartbeatSequence);
    if (sentAtMs === undefined) return;
    this.#renewals.push(Number(renewal.revision));
    const seen = this.#renewals.length > renewalsUntilSeen ? this.#renewals.shift() : undefined;
    if (!Number.isNaN(this.#seenRevision)) this.#seenRevision = seen ?? 0;
    this.#leaseUntilMs = Math.max(this.#leaseUntilMs, sentAtMs + renewal.durationMs);
  }

  /** Writes the rack, a credential and the hosts as the operators' API would. */
  async prepare(): Promise<void> {
    const store = await openMemoryStore({ random: this.#view.random, disk: this.#storage.disk });
    await putRack(store);
    await putCredential(store, this.#view.random);
    const ownSteps = this.#view.workflows ? ownStepsOf(this.#options.seed) : [];
    if (this.#view.workflows || this.#view.pools) await putFleet(store, ownSteps);
    const keptShare = ownSteps.length === 0 ? 0.8 : 0.2;
    for (let index = 1; index <= this.#hosts; index++) {
      // Who is only looked at has time for templates from the beginning.
      const isKept = this.#view.workflows && this.#view.random.fraction() < keptShare;
      const goal = isKept ? HostGoal.MANAGEABLE : HostGoal.UNSPECIFIED;
      await putHost(store, index, goal, this.#options.seed);
    }
  }

  async run(): Promise<void> {
    if (this.#options.planted === 'storeForgets') this.#forgetLater();
    for (const replica of this.#replicas) replica.start();
    for (const box of this.#boxes) box.start();
    if (this.#operators === undefined) startPerson(this.#view, this.#judge);
    else this.#operators.start();
    if (this.#view.workflows) startAuthors(this.#view);
    this.#discoverers?.start();
    this.#poolPeople?.start();
    if (this.#options.views ?? this.#options.seed % 5 === 3) watchFleetViews(this.#view);
    scheduleTrouble(this.#view, this.#victims(), this.#view.chance.pick(troubleEveryMs));
    this.#keepBackup();
    this.#heap.after(this.#faultsUntilMs, () => void this.#repair());
    const stop = () => {
      this.#judge.look();
      this.#judgeWorkflows();
      if (this.#judge.violations.length > 0) return true;
      return !this.#faulty() && this.#isStable();
    };
    const { batches, pools, discovery } = this.#view;
    const quietMs = batches || pools || discovery ? settleLongMs : settleMs;
    await this.#heap.run(this.#faultsUntilMs + quietMs, stop);
    if (this.#judge.violations.length > 0) return;
    this.#judgeEnd();
    const files = this.#boxes.flatMap(({ platters }) => [...platters.files.values()]);
    this.#judge.end(files, bmcPassword);
  }

  #victims(): Victims {
    const [box] = this.#boxes;
    if (box === undefined) throw new Error('a rack has an agent');
    return {
      box,
      replicas: this.#replicas,
      reaches: this.#reaches,
      machines: [...this.#machines.values()],
      crossBmcs: (a, b) => this.#crossBmcs(a, b),
      cloneAgent: (durationMs) => this.#cloneAgent(box, durationMs),
      olderAgentDisk: () => this.#backup,
      restoreStore: (saysSo) => this.#restoreStore(saysSo),
      agentForgot: () => {
        this.#seenRevision = Number.NaN;
        this.#judge.agentForgot();
      },
    };
  }

  #crossBmcs(a: SimMachine, b: SimMachine): void {
    for (const [address, machine] of this.#cables) {
      if (machine === a) this.#cables.set(address, b);
      if (machine === b) this.#cables.set(address, a);
    }
  }

  #cloneAgent(original: AgentBox, durationMs: number): void {
    const clone = this.#makeBox(`clone${this.#boxes.length}`);
    clone.platters.restore(original.platters.copy());
    this.#boxes.push(clone);
    clone.start();
    this.#heap.after(durationMs, () => clone.retire());
  }

  /** An older state of the store takes its place, while every control plane is down. */
  #restoreStore(saysSo: boolean): void {
    for (const replica of this.#replicas) replica.kill();
    if (!this.#storage.restore(saysSo)) return;
    this.#judge.storeRestored(this.#seenRevision);
  }

  #keepBackup(): void {
    this.#heap.after(backupEveryMs, () => {
      if (!this.#faulty()) return;
      this.#backup = this.#boxes[0]?.platters.copy();
      this.#storage.backUp();
      this.#keepBackup();
    });
  }

  /** The planted fault of a store that holds its last seconds in memory only. */
  #forgetLater(): void {
    this.#storage.remember();
    this.#heap.after(1_000, () => this.#forgetLater());
  }

  /** The faults are over: people have mended what only people mend. */
  async #repair(): Promise<void> {
    this.#view.trace('the faults are over');
    for (const [index, machine] of [...this.#machines.values()].entries()) {
      machine.bmc.repair();
      this.#cables.set(bmcAddress(index + 1), machine);
      for (const drive of machine.drives) {
        drive.mend();
        drive.traits.lies = false;
      }
    }
    for (const reach of this.#reaches) reach.awayUntilMs = 0;
    for (const [index, box] of this.#boxes.entries()) {
      box.mend();
      if (index > 0) box.retire();
    }
    // A credential that a BMC has refused is not presented again before it is stored anew.
    const store = await openMemoryStore({ random: this.#view.random, disk: this.#storage.disk });
    await putCredential(store, this.#view.random);
    this.#discoverers?.repair();
  }

  /** W6, once nothing goes wrong any more. */
  #judgeWorkflows(): void {
    if (!this.#view.workflows || this.#faulty()) return;
    const { nowMs } = this.#heap;
    this.#judge.workflows.judgeDeadlines(this.#faultsUntilMs, this.#view.wallStartMs + nowMs);
  }

  /** J7, as long as nothing has been written since it was looked at last. */
  #isStable(): boolean {
    if (!this.#judge.workflows.isSettled()) return false;
    if (!this.#judge.discovery.isSettled() || !this.#judge.batches.isSettled()) return false;
    if (!this.#judge.pools.isSettled() || this.#poolPeople?.isDone() === false) return false;
    if (this.#operators !== undefined) return this.#operators.isStable();
    if (this.#judgedStable === this.#judge.revision) return false;
    this.#judgedStable = this.#judge.revision;
    return [...this.#judge.hosts.values()].every(({ record }) => isStable(record));
  }

  #judgeEnd(): void {
    for (const { key, record } of this.#judge.hosts.values()) {
      if (this.#operators?.isSettled(record) ?? isStable(record)) continue;
      const { run, backoff } = record.host?.status ?? {};
      const why = run?.waiting?.message ?? run?.error?.message ?? backoff?.givenUpReason;
      this.#judge.found('J7', `${key} is not stable at the end: ${why}`);
    }
  }

  result(): WorldResult {
    return {
      seed: this.#options.seed,
      violations: this.#judge.violations,
      events: this.#heap.taken,
      simulatedMs: this.#heap.nowMs,
      crashes: this.#crashes,
      figures: this.#figures,
      traceHash: this.#trace.hash(),
      trace: this.#trace.last(),
    };
  }
}

function isStable({ host }: wire.HostRecord): boolean {
  const { state, run } = host?.status ?? {};
  const isKept = host?.spec?.goal === HostGoal.MANAGEABLE;
  const wanted = isKept ? HostState.MANAGEABLE : HostState.AVAILABLE;
  const isUsed = state === HostState.PROVISIONED;
  return (state === wanted || isUsed) && (run === undefined || run.phase === RunPhase.ENDED);
}
