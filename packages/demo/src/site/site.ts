/**
 * The whole of the demo's machine room: a control plane, racks with an agent each, machines with
 * BMCs, all in one folder and on loopback.
 *
 * S1 Agent, control plane, runner and command are the real programs, started as processes; this
 *    speaks to them by their API and their files only.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BmcProtocol, type Host, type Rack } from '@rackwright/messages';
import { type BootNetwork, type SiteDhcpServer, startLeaseGiver } from '@rackwright/sim/firmware';
import { freePorts, type SoftwareRegistry, startSoftwareRegistry } from '@rackwright/sim/loopback';
import type { NatsCluster } from '@rackwright/store/testing';
import { faults } from '../faults.ts';
import type { Fleet } from '../fleet.ts';
import { openClients, type SiteClients } from './clients.ts';
import {
  agentConfig,
  bootFileBytes,
  controlPlaneConfig,
  loopback,
  networkOf,
  type RackPorts,
  writeJson,
} from './configuration.ts';
import { eventually } from './eventually.ts';
import { programPath, removeFolder } from './folder.ts';
import { bmcPassword, bmcUser, type HousedMachine, houseMachine } from './machine.ts';
import { startNats, storeOf } from './nats.ts';
import { Program } from './program.ts';
import { bundlePrograms } from './programs.ts';
import { planStrangers, strangersMax } from './strangers.ts';

export interface CommandResult {
  readonly code: number;
  /** Its output, on both streams. */
  readonly output: string;
}

interface RackSite {
  readonly agent: Program;
  readonly network: BootNetwork;
  readonly leaseGiver: SiteDhcpServer;
}

const startTimeoutMs = 180_000;
const commandTimeoutMs = 600_000;
/** Kept in place of the right one where the story needs a wrong one. */
const stalePassword = 'changeme';

export class Site {
  readonly folder: string;
  readonly fleet: Fleet;
  readonly machines = new Map<string, HousedMachine>();
  readonly #environment: Readonly<Record<string, string>>;
  readonly #bundled: string | undefined;
  readonly #racks = new Map<string, RackSite>();
  readonly #uids = new Map<string, string>();
  readonly #strangers: HousedMachine[] = [];
  #operatorsPort = 0;
  #guard: ChildProcess | undefined;
  #controlPlane: Program | undefined;
  #clients: SiteClients | undefined;
  #registry: SoftwareRegistry | undefined;
  #nats: NatsCluster | undefined;

  /** `bundled` is a folder with programs that were bundled before. */
  constructor(folder: string, fleet: Fleet, bundled: string | undefined) {
    this.folder = folder;
    this.fleet = fleet;
    this.#bundled = bundled;
    // Node keeps compiled code by path, and that of the demo's own bundles is of no use later.
    const compiled = bundled === undefined ? undefined : process.env['NODE_COMPILE_CACHE'];
    this.#environment = {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      RACKWRIGHT_CONFIG: join(folder, 'rackwright.json'),
      NODE_COMPILE_CACHE: compiled ?? join(folder, 'compiled'),
    };
  }

  get clients(): SiteClients {
    if (this.#clients === undefined) throw new Error('the control plane has not been started');
    return this.#clients;
  }

  /** The program itself, to be ended and started as a person would not. */
  get controlPlane(): Program {
    if (this.#controlPlane === undefined) throw new Error('the control plane has not been started');
    return this.#controlPlane;
  }

  /** "127.0.0.1:PORT" of operators and browsers. */
  get operatorsAddress(): string {
    return `${loopback}:${this.#operatorsPort}`;
  }

  /** Programs and guard: from here on nothing is left behind. */
  async bundle(): Promise<void> {
    await bundlePrograms(this.folder, this.#bundled);
    this.#guard = spawn(process.execPath, [programPath(this.folder, 'guard'), this.folder], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: this.#environment,
    });
  }

  /** The control plane that starts next keeps its state there. */
  async startNats(): Promise<void> {
    this.#nats = await startNats(this.folder);
  }

  get nats(): NatsCluster {
    if (this.#nats === undefined) throw new Error('the demo was started without --nats');
    return this.#nats;
  }

  async startControlPlane(): Promise<void> {
    const [operators = 0, agents = 0, metrics = 0] = await freePorts(3);
    this.#operatorsPort = operators;
    const config = join(this.folder, 'controlplane.json');
    const store = this.#nats === undefined ? undefined : storeOf(this.#nats);
    writeJson(config, controlPlaneConfig(this.folder, { operators, agents, metrics }, store));
    this.#controlPlane = this.#program('controlplane', ['--config', config], 'controlplane');
    this.#controlPlane.start();
    const identity = join(this.folder, 'controlplane/identity');
    const read = (name: string) =>
      eventually(`the control plane's ${name}`, startTimeoutMs, () => {
        return readFileSync(join(identity, name), 'utf8');
      });
    const caPem = await read('ca.pem');
    const token = (await read('admin.token')).trim();
    const target = this.operatorsAddress;
    const clients = openClients({ target, caPem, token });
    this.#clients = clients;
    await eventually('the control plane', startTimeoutMs, () => clients.racks.listRacks({}));
    // BMCs and registries of the demo are on loopback.
    await clients.fleet.updateFleet({
      fleet: { spec: { internalAddresses: ['127.0.0.0/8'] } },
      updateMask: { paths: ['spec.internal_addresses'] },
    });
    writeJson(join(this.folder, 'rackwright.json'), {
      server: target,
      tokenFile: join(identity, 'admin.token'),
      caFile: join(identity, 'ca.pem'),
    });
  }

  /** A registry of images, empty. */
  async startRegistry(): Promise<void> {
    const [port = 0] = await freePorts(1);
    this.#registry = await startSoftwareRegistry({ address: loopback, port });
  }

  get registry(): SoftwareRegistry {
    if (this.#registry === undefined) throw new Error('the registry has not been started');
    return this.#registry;
  }

  /** Racks with their networks and agents, and the machines in them. */
  async startRacks(): Promise<void> {
    this.#writeBootFiles();
    for (const [index, rack] of this.fleet.racks.entries()) await this.#startRack(rack, index);
    await Promise.all(this.fleet.racks.map((rack) => this.untilRack(rack, { connected: true })));
  }

  #writeBootFiles(): void {
    mkdirSync(join(this.folder, 'boot'));
    for (const [name, size] of Object.entries(bootFileBytes)) {
      writeFileSync(join(this.folder, 'boot', name), Buffer.alloc(size, `${name} `));
    }
  }

  async #startRack(rack: string, index: number): Promise<void> {
    const [dhcp = 0, client = 0, pxe = 0, tftp = 0, ...more] = await freePorts(7);
    const [http = 0, runner = 0, metrics = 0] = more;
    const ports: RackPorts = { dhcp, client, pxe, tftp, http, runner, metrics };
    const network = networkOf(ports);
    const prefix = `127.77.${index + 1}`;
    const leaseGiver = await startLeaseGiver({ ...network, serverAddress: loopback, prefix });
    const config = join(this.folder, `agent-${rack}.json`);
    writeJson(config, agentConfig(this.folder, rack, ports));
    const agent = this.#program('agent', ['run', '--config', config], `agent-${rack}`);
    this.#racks.set(rack, { agent, leaseGiver, network });
    const inRack = this.fleet.machines.filter((machine) => machine.rack === rack);
    const housing = inRack.map((plan) => houseMachine(this.folder, plan, network));
    const { racks } = this.clients;
    await racks.createRack({ rackId: rack });
    const { token } = await racks.createJoinToken({ rack: `racks/${rack}` });
    const address = this.operatorsAddress;
    const joined = await this.#run('agent', ['join', address, '-', '--config', config], token);
    if (joined.code !== 0) throw new Error(`the agent of ${rack} could not join: ${joined.output}`);
    agent.start();
    for (const housed of await Promise.all(housing)) this.machines.set(housed.plan.name, housed);
  }

  /** Makes the hosts known; their goal does the rest. */
  async enrolHosts(): Promise<void> {
    const { credentials, hosts } = this.clients;
    const good = { username: bmcUser, password: bmcPassword };
    await credentials.createCredential({ credentialId: 'bmc', credential: good });
    for (const { plan, bmc } of this.machines.values()) {
      let credential = 'bmc';
      if (plan.fault !== undefined && faults[plan.fault].kind === 'credential') {
        credential = `bmc-of-${plan.name}`;
        const stale = { username: bmcUser, password: stalePassword };
        await credentials.createCredential({ credentialId: credential, credential: stale });
      }
      const { uid } = await hosts.createHost({
        hostId: plan.name,
        host: {
          labels: { firmware: plan.form },
          spec: {
            rack: `racks/${plan.rack}`,
            bmc: {
              address: bmc.address,
              port: bmc.port,
              protocol: BmcProtocol.REDFISH,
              certificateSha256: bmc.certificateSha256,
              credential: `credentials/${credential}`,
            },
            bootMacs: [plan.mac],
          },
        },
      });
      this.#uids.set(plan.name, uid);
    }
  }

  /** Machines that nobody enrols; they are off. */
  async addStrangers(count: number, seed: number): Promise<void> {
    const plans = planStrangers(count, this.fleet.racks, seed);
    for (const plan of plans) {
      const network = this.#racks.get(plan.rack)?.network;
      if (network === undefined) throw new Error(`there is no rack ${plan.rack}`);
      const housed = await houseMachine(this.folder, plan, network);
      this.#strangers.push(housed);
      this.machines.set(plan.name, housed);
    }
  }

  /** All of them, or the first so many. */
  strangers(count = strangersMax): readonly HousedMachine[] {
    return this.#strangers.slice(0, count);
  }

  /** The uid that the host was enrolled with, also when it is gone. */
  uidOf(host: string): string {
    const uid = this.#uids.get(host);
    if (uid === undefined) throw new Error(`there is no host ${host}`);
    return uid;
  }

  async listHosts(): Promise<Host[]> {
    return (await this.clients.hosts.listHosts({ pageSize: 1_000 })).hosts;
  }

  async listRacks(): Promise<Rack[]> {
    return (await this.clients.racks.listRacks({ pageSize: 1_000 })).racks;
  }

  async untilRack(rack: string, { connected }: { readonly connected: boolean }): Promise<void> {
    const condition = `the agent of ${rack} to be ${connected ? 'connected' : 'away'}`;
    await eventually(condition, startTimeoutMs, async () => {
      const { status } = await this.clients.racks.getRack({ name: `racks/${rack}` });
      return (status?.agentConnected === true) === connected ? true : undefined;
    });
  }

  agentOf(rack: string): Program {
    const site = this.#racks.get(rack);
    if (site === undefined) throw new Error(`there is no rack ${rack}`);
    return site.agent;
  }

  machine(host: string): HousedMachine {
    const machine = this.machines.get(host);
    if (machine === undefined) throw new Error(`there is no host ${host}`);
    return machine;
  }

  /** Runs the rackwright command as a person would. */
  rackwright(args: readonly string[], input = ''): Promise<CommandResult> {
    return this.#run('rackwright', args, input);
  }

  /** Runs a command of the control plane's program, with the paths of the packages. */
  controlPlaneCommand(args: readonly string[]): Promise<CommandResult> {
    return this.#run(
      'controlplane',
      args.map((word) => this.pathOf(word)),
      '',
    );
  }

  /** The local path for a path of the packages; every other word is unchanged. */
  pathOf(word: string): string {
    if (word === '/etc/rackwright/controlplane.yaml') return join(this.folder, 'controlplane.json');
    return word.replace(/^\/var\/lib\/rackwright/, join(this.folder, 'controlplane'));
  }

  get controlPlaneProgram(): Program {
    if (this.#controlPlane === undefined) throw new Error('the control plane was never started');
    return this.#controlPlane;
  }

  /** Starts the control plane that was stopped, and waits until it answers. */
  async startAgain(): Promise<void> {
    this.controlPlaneProgram.start();
    await eventually('the control plane', startTimeoutMs, () => this.clients.racks.listRacks({}));
  }

  #run(program: 'agent' | 'rackwright' | 'controlplane', args: readonly string[], input: string) {
    return new Promise<CommandResult>((resolve) => {
      const child = execFile(
        process.execPath,
        [programPath(this.folder, program), ...args],
        { env: this.#environment, timeout: commandTimeoutMs, cwd: this.folder },
        (_, out, err) => resolve({ code: child.exitCode ?? 1, output: `${out}${err}`.trimEnd() }),
      );
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    });
  }

  #program(name: 'controlplane' | 'agent', args: readonly string[], log: string): Program {
    return new Program({
      program: programPath(this.folder, name),
      args,
      log: join(this.folder, `${log}.log`),
      environment: this.#environment,
    });
  }

  /** The ends of the programs' logs, for when something went wrong. */
  lastLines(): string {
    const programs: [string, Program][] = [...this.#racks].map(([id, { agent }]) => {
      return [`the agent of ${id}`, agent];
    });
    if (this.#controlPlane !== undefined)
      programs.unshift(['the control plane', this.#controlPlane]);
    return programs.map(([name, each]) => `--- ${name}\n${each.lastLines()}`).join('\n');
  }

  /** Ends everything that was started and removes the folder; the guard sees to the rest. */
  async stop(): Promise<void> {
    this.#clients?.close();
    const programs = [...this.#racks.values()].map(({ agent }) => agent);
    if (this.#controlPlane !== undefined) programs.push(this.#controlPlane);
    await Promise.all(programs.map((program) => program.kill()));
    await this.#nats?.dispose();
    for (const { leaseGiver } of this.#racks.values()) leaseGiver.close();
    await this.#registry?.close();
    await Promise.all(
      [...this.machines.values()].map(async ({ power, bmc }) => {
        power.powerOff();
        await bmc.close();
      }),
    );
    await this.#dismissGuard();
    await removeFolder(this.folder);
  }

  async #dismissGuard(): Promise<void> {
    const guard = this.#guard;
    if (guard === undefined || guard.exitCode !== null || guard.signalCode !== null) return;
    const ended = once(guard, 'exit');
    guard.stdin?.end();
    await ended;
  }
}
