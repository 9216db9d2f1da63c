/**
 * One rack on loopback: the real control plane and agent as processes of their own, software
 * machines behind a BMC stand-in, and a client of the operators' API. Everything lives in one
 * temporary folder and ends, by pid, with `stop`.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { IdentityFiles, join as joinRack } from '@rackwright/agent';
import { type CleaningPolicySchema, type Host, HostGoal } from '@rackwright/messages';
import { nodeClock, nodeDisk, nodeRandom } from '@rackwright/platform/node';
import { connect, operatorClients } from '@rackwright/rpc';
import { type BootNetwork, type SiteDhcpServer, startLeaseGiver } from '@rackwright/sim/firmware';
import { freePorts } from '@rackwright/sim/loopback';
import { arm, armedFile, type Crash, runnerWordOf, type Victim } from './crash.ts';
import { endProcessesOf } from './leftovers.ts';
import {
  anotherMachine,
  bmcPassword,
  type MachineFolder,
  type MachinePlan,
  makeMachine,
} from './machines.ts';
import { patient } from './patient.ts';
import { shortPauses } from './pauses.ts';
import { compileCache, type ProgramForm, type ProgramName, programOf } from './programs.ts';

const run = promisify(execFile);
/** Dozens of racks are looked at side by side, and each look costs both sides. */
const pollMs = 500;
const standIn = join(import.meta.dirname, 'ipmitool-stand-in.sh');

export interface RackOptions {
  readonly machines: readonly MachinePlan[];
  /** Cabled and with a BMC, but in no list: nobody enrols them. */
  readonly strangers?: readonly MachinePlan[];
  /** Armed from the start, until its process has passed the boundary. */
  readonly crash?: Crash;
  readonly goal?: HostGoal;
  readonly cleaning?: MessageInitShape<typeof CleaningPolicySchema>;
  /** Changes a machine before anybody knows of it. */
  readonly prepareMachine?: (machine: MachineFolder) => void;
  /** Sections that replace those of the programs' configurations. */
  readonly controlplane?: Readonly<Record<string, unknown>>;
  readonly agent?: Readonly<Record<string, unknown>>;
  /** What the BMCs take; a usual one without it. */
  readonly bmcPassword?: string;
  /** What the programs are started from; bundles without it. */
  readonly programs?: ProgramForm;
  /** From a program's end to its next start, milliseconds. */
  readonly restartDelayMs?: number;
  /** A second control plane on the same store; the agent knows only the first. */
  readonly replica?: boolean;
}

type Ports = Readonly<
  Record<
    | 'operators'
    | 'agents'
    | 'http'
    | 'tftp'
    | 'runner'
    | 'dhcp'
    | 'client'
    | 'pxe'
    | 'replicaOperators'
    | 'replicaAgents',
    number
  >
>;

type Role = 'controlplane' | 'agent' | 'replica';

/** What machines fetch on their way to the runner: contents do not matter, sizes do. */
const fileSizes = {
  'undionly.kpxe': 70_000,
  'snponly.efi': 170_000,
  vmlinuz: 300_000,
  initrd: 500_000,
} as const;

export class Rack {
  readonly folder: string;
  readonly machines: MachineFolder[] = [];
  readonly strangers: MachineFolder[] = [];
  /** How often each program was started. */
  readonly starts = { controlplane: 0, agent: 0, replica: 0 };
  readonly #options: RackOptions;
  readonly #ports: Ports;
  readonly #children = new Map<Role, ChildProcess>();
  #stopping = false;
  #clients: ReturnType<typeof clientsOf> | undefined;
  #replicaClients: ReturnType<typeof clientsOf> | undefined;
  #leaseGiver: SiteDhcpServer | undefined;

  private constructor(options: RackOptions, ports: Ports) {
    this.#options = options;
    this.#ports = ports;
    this.folder = mkdtempSync(join(tmpdir(), 'rackwright-e2e-'));
  }

  #program(name: ProgramName): string {
    return programOf(name, this.#options.programs);
  }

  /** Starts everything and enrols the machines. */
  static async start(options: RackOptions): Promise<Rack> {
    const [operators = 0, agents = 0, http = 0, tftp = 0, runner = 0] = await freePorts(5);
    const [dhcp = 0, client = 0, pxe = 0] = await freePorts(3);
    const [replicaOperators = 0, replicaAgents = 0] = await freePorts(2);
    const replica = { replicaOperators, replicaAgents };
    const ports = { operators, agents, http, tftp, runner, dhcp, client, pxe, ...replica };
    const rack = new Rack(options, ports);
    try {
      await rack.#prepare();
      return rack;
    } catch (error) {
      const text = rack.logs();
      await rack.stop();
      throw new Error(`the rack did not start: ${String(error)}\n${text}`, { cause: error });
    }
  }

  get #bmcPassword(): string {
    return this.#options.bmcPassword ?? bmcPassword;
  }

  get clients(): ReturnType<typeof clientsOf> {
    if (this.#clients === undefined) throw new Error('the rack has not been started');
    return this.#clients;
  }

  /** Where machines fetch scripts and files, in plain text. */
  get bootHttpPort(): number {
    return this.#ports.http;
  }

  /** Variables with which the command finds the control plane. */
  get commandEnvironment(): Record<string, string> {
    const identity = join(this.folder, 'controlplane/identity');
    return {
      RACKWRIGHT_SERVER: `127.0.0.1:${this.#ports.operators}`,
      RACKWRIGHT_TOKEN_FILE: join(identity, 'admin.token'),
      RACKWRIGHT_CA_FILE: join(identity, 'ca.pem'),
      ...compileCache(),
    };
  }

  /** The same API, asked of the second control plane. */
  get replicaClients(): ReturnType<typeof clientsOf> {
    if (this.#replicaClients === undefined) throw new Error('the rack has no replica');
    return this.#replicaClients;
  }

  async #prepare(): Promise<void> {
    const network = this.#network();
    this.#leaseGiver = await startLeaseGiver({
      ...network,
      serverAddress: '127.0.0.1',
      prefix: '127.77.1',
    });
    const { crash, machines, strangers = [] } = this.#options;
    for (const plan of machines) this.#addMachine(plan, crash);
    for (const plan of strangers) this.strangers.push(this.#makeMachine(plan));
    this.#writeConfigurations();
    arm(this.folder, crash, this.#pidFile(crash?.victim));
    await this.#startProgram('controlplane');
    await this.#connect();
    if (this.#options.replica === true) await this.#startReplica();
    await this.enrolAgent();
    await this.#startProgram('agent');
    await this.enrolHosts();
  }

  #network(): BootNetwork {
    const { dhcp, client, pxe, tftp } = this.#ports;
    return {
      broadcastAddress: '127.255.255.255',
      dhcpPort: dhcp,
      clientPort: client,
      pxePort: pxe,
      tftpPort: tftp,
    };
  }

  #makeMachine(plan: MachinePlan): MachineFolder {
    const root = join(this.folder, 'machines');
    return makeMachine(root, plan, this.#network(), this.#program('runner'));
  }

  #addMachine(plan: MachinePlan, crash: Crash | undefined): void {
    const machine = this.#makeMachine(this.#withCrash(plan, crash));
    this.machines.push(machine);
    writeFileSync(join(machine.folder, 'password'), this.#bmcPassword);
    this.#options.prepareMachine?.(machine);
  }

  /** One more machine of a kind, with names of its own, is enrolled; `crash` counts from now on. */
  async addHost(kind: MachinePlan, crash?: Crash): Promise<MachineFolder> {
    this.#addMachine(anotherMachine(kind, this.machines.length), crash);
    arm(this.folder, crash, this.#pidFile(crash?.victim));
    const machine = this.machines.at(-1);
    if (machine === undefined) throw new Error('no machine');
    await this.#enrolHost(machine);
    return machine;
  }

  #withCrash(plan: MachinePlan, crash: Crash | undefined): MachinePlan {
    const word = runnerWordOf(crash, this.#pidFile(crash?.victim));
    return word === '' ? plan : { ...plan, extraArguments: `${plan.extraArguments ?? ''} ${word}` };
  }

  #pidFile(victim: Victim | undefined): string {
    if (victim !== 'runner') return join(this.folder, `${victim}.pid`);
    return join(this.machines.at(-1)?.folder ?? '', 'runner.pid');
  }

  #writeConfigurations(): void {
    const { operators, agents, http, tftp, runner } = this.#ports;
    const { replicaOperators, replicaAgents } = this.#ports;
    const address = '127.0.0.1';
    const controlplane = this.#controlPlaneConfiguration('controlplane', operators, agents);
    const replica = this.#controlPlaneConfiguration('replica', replicaOperators, replicaAgents);
    const tool = join(this.folder, 'ipmitool');
    const args = [standIn, process.execPath, this.#program('machine')];
    args.push(join(this.folder, 'machines'));
    // The agent's tools get no environment; the machines that this one starts need Node's cache.
    const cache = Object.entries(compileCache()).map(([name, value]) => `${name}='${value}' `);
    writeFileSync(tool, `#!/bin/sh\n${cache.join('')}exec ${args.join(' ')} "$@"\n`);
    chmodSync(tool, 0o755);
    const named = (name: string) => ({ name, path: join(this.folder, name) });
    for (const [name, size] of Object.entries(fileSizes)) {
      writeFileSync(join(this.folder, name), Buffer.alloc(size, name));
    }
    const agent = {
      stateFolder: join(this.folder, 'agent'),
      metrics: { port: 0 },
      serverAddress: address,
      dhcp: this.#agentDhcp(),
      tftp: { address, port: tftp },
      http: { address, port: http },
      loaders: { bios: 'undionly.kpxe', uefiX64: 'snponly.efi' },
      loaderFiles: ['undionly.kpxe', 'snponly.efi'].map(named),
      files: ['vmlinuz', 'initrd'].map(named),
      runner: { address, port: runner },
      bmc: { ipmitoolPath: tool, spacingMs: 10, readBackPollMs: 100 },
      ...this.#options.agent,
    };
    for (const [role, config] of Object.entries({ controlplane, agent, replica })) {
      const crashAt = armedFile(this.folder, role);
      writeFileSync(join(this.folder, `${role}.json`), JSON.stringify({ ...config, crashAt }));
    }
  }

  #controlPlaneConfiguration(role: Role, operators: number, agents: number): object {
    const address = '127.0.0.1';
    return {
      ...{ dataFolder: join(this.folder, role), metrics: { port: 0 } },
      operators: { address, port: operators },
      agents: { address, port: agents, advertise: `127.0.0.1:${agents}` },
      names: ['127.0.0.1', 'localhost'],
      engine: { ...shortPauses, goalFailuresMax: 2 },
      sessions: {
        heartbeatIntervalMs: 750,
        idleHeartbeatIntervalMs: 3_000,
        leaseDurationMs: 3_000,
      },
      resyncIntervalMs: 2_000,
      ...this.#options.controlplane,
    };
  }

  #agentDhcp(): object {
    const { broadcastAddress, dhcpPort, clientPort, pxePort } = this.#network();
    const listen = { address: broadcastAddress, port: dhcpPort };
    const pxe = { pxeAddress: '127.0.0.1', pxePort };
    return { mode: 'proxy', ...listen, ...pxe, clientPort, broadcastAddress };
  }

  async #startProgram(role: Role): Promise<void> {
    this.starts[role] += 1;
    const config = join(this.folder, `${role}.json`);
    const log = openSync(join(this.folder, `${role}.log`), 'a');
    const program = this.#program(role === 'agent' ? 'agent' : 'controlplane');
    const args = role === 'agent' ? [program, 'run'] : [program];
    const child = spawn(process.execPath, [...args, '--config', config], {
      stdio: ['ignore', log, log],
    });
    writeFileSync(join(this.folder, `${role}.pid`), String(child.pid));
    this.#children.set(role, child);
    child.once('exit', () => {
      if (this.#stopping || this.#paused.has(role)) return;
      setTimeout(() => void this.#restart(role), this.#options.restartDelayMs ?? 200);
    });
  }

  readonly #paused = new Set<Role>();

  async #restart(role: Role): Promise<void> {
    if (!this.#stopping && !this.#paused.has(role)) await this.#startProgram(role);
  }

  /** Ends programs by SIGKILL, all at once; each is started again at once. */
  kill(...roles: Role[]): void {
    for (const role of roles) this.#children.get(role)?.kill('SIGKILL');
  }

  /** SIGSTOP makes a program hang, SIGCONT lets it go on. */
  signal(role: Role, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#children.get(role)?.kill(signal);
  }

  /** Somebody presses the button of a machine; it boots from the network. */
  switchOn({ plan }: MachineFolder): void {
    const tool = join(this.folder, 'ipmitool');
    const button = ['-H', plan.bmcAddress, '-f', '/dev/stdin', 'raw', '0x00', '0x02', '0x01'];
    execFileSync(tool, button, { input: this.#bmcPassword });
  }

  /** The process that a program is now. */
  pidOf(role: Role): number {
    return this.#children.get(role)?.pid ?? 0;
  }

  /** Ends a program by SIGKILL and keeps it away until `resume`. */
  async pause(role: Role): Promise<void> {
    this.#paused.add(role);
    const child = this.#children.get(role);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async resume(role: Role): Promise<void> {
    this.#paused.delete(role);
    await this.#startProgram(role);
  }

  async #connect(): Promise<void> {
    this.#clients = await this.#connectTo('controlplane', this.#ports.operators);
  }

  /** Replicas share one identity: whoever sets one up copies its folder. */
  async #startReplica(): Promise<void> {
    const to = join(this.folder, 'replica/identity');
    cpSync(join(this.folder, 'controlplane/identity'), to, { recursive: true });
    chmodSync(to, 0o700);
    await this.#startProgram('replica');
    this.#replicaClients = await this.#connectTo('replica', this.#ports.replicaOperators);
  }

  async #connectTo(role: Role, port: number): Promise<ReturnType<typeof clientsOf>> {
    const identity = join(this.folder, role, 'identity');
    const caPem = await eventually('the control plane to make its identity', () => {
      return readFileSync(join(identity, 'ca.pem'), 'utf8');
    });
    const token = await eventually('the admin token', () => {
      return readFileSync(join(identity, 'admin.token'), 'utf8').trim();
    });
    const clients = clientsOf(`127.0.0.1:${port}`, caPem, token);
    await eventually(`the ${role} to answer`, () => clients.racks.listRacks({}));
    return clients;
  }

  /** Makes the rack, and lets the agent join it: not while it runs. */
  async enrolAgent(): Promise<void> {
    const { fleet, racks } = this.clients;
    // The BMCs of its machines are on loopback.
    await fleet.updateFleet({
      fleet: { spec: { internalAddresses: ['127.0.0.0/8'] } },
      updateMask: { paths: ['spec.internal_addresses'] },
    });
    await racks.createRack({ rackId: 'r1' });
    const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
    await this.#join(`127.0.0.1:${this.#ports.operators}`, token);
  }

  /** A rack of sources joins as people do, others without another process. */
  async #join(address: string, token: string): Promise<void> {
    if (this.#options.programs === 'source') {
      const args = ['join', address, token, '--config', join(this.folder, 'agent.json')];
      await run(process.execPath, [this.#program('agent'), ...args]);
      return;
    }
    const files = new IdentityFiles(nodeDisk(), join(this.folder, 'agent'));
    const parts = { clock: nodeClock(), random: nodeRandom() };
    await files.save(await joinRack(parts, await files.key(), address, token));
  }

  /** Makes the credential and a host for each machine. */
  async enrolHosts(): Promise<void> {
    await this.clients.credentials.createCredential({
      credentialId: 'bmc',
      credential: { username: 'admin', password: this.#bmcPassword },
    });
    for (const machine of this.machines) await this.#enrolHost(machine);
  }

  async #enrolHost({ plan }: MachineFolder): Promise<void> {
    const { cleaning, goal = HostGoal.AVAILABLE } = this.#options;
    await this.clients.hosts.createHost({
      hostId: plan.name,
      host: {
        spec: {
          rack: 'racks/r1',
          bmc: { address: plan.bmcAddress, credential: 'credentials/bmc' },
          bootMacs: [plan.mac],
          goal,
          ...(cleaning === undefined ? {} : { cleaning }),
        },
      },
    });
  }

  /** The host once `holds` says so; throws with the logs' ends when it takes too long. */
  async untilHost(
    name: string,
    what: string,
    holds: (host: Host) => boolean,
    timeoutMs = 240_000,
  ): Promise<Host> {
    const endMs = Date.now() + timeoutMs;
    let last: Host | undefined;
    while (Date.now() < endMs) {
      try {
        last = await this.clients.hosts.getHost({ name: `hosts/${name}` });
        if (holds(last)) return last;
      } catch {
        // The control plane may just have been killed: that is the test.
      }
      await sleep(pollMs);
    }
    const status = last?.status;
    const run = status?.run;
    const at = `${status?.display} at ${run?.steps[run.currentStep]?.name}`;
    const error = status?.lastError?.failure?.message ?? 'no error';
    throw new Error(`${name} is not ${what}: ${at}, ${error}\n${this.logs()}`);
  }

  logs(): string {
    const names = ['controlplane.log', 'replica.log', 'agent.log'];
    const files = names.map((name) => join(this.folder, name));
    const machineLogs = [...this.machines, ...this.strangers].map(({ folder }) =>
      join(folder, 'machine.log'),
    );
    return [...files, ...machineLogs].map((file) => `--- ${file}\n${tail(file)}`).join('\n');
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#clients?.close();
    this.#replicaClients?.close();
    this.#leaseGiver?.close();
    await endProcessesOf(this.folder);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

function clientsOf(target: string, caPem: string, token: string) {
  const channel = connect({ target, caPem, serverName: 'localhost' });
  return { ...patient(operatorClients(channel, token)), close: () => channel.close() };
}

function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(-40).join('\n');
  } catch {
    return '(none)';
  }
}

export async function eventually<T>(what: string, attempt: () => T | Promise<T>): Promise<T> {
  const endMs = Date.now() + 180_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > endMs) throw new Error(`waited in vain for ${what}`, { cause: error });
      await sleep(50);
    }
  }
}
