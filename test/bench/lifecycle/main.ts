/**
 * What a host costs from create to available: `npm run bench -- lifecycle [--hosts N]
 * [--ironic-hosts N] [--profile FOLDER]`. The control plane and the agent are processes of their
 * own, over mTLS; the machines are instant, so that what is left is ours: decisions, writes,
 * fsyncs, signatures, certificates. Then OpenStack Ironic does the same with instant machines, if
 * it is there (`ironic.ts`). Ends with 1 when a figure misses its floor; fewer hosts than
 * `judgedHosts` are not judged. `--profile` writes the CPU profiles of both programs there.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { HostState, WatchHostsResponse_Kind } from '@rackwright/messages';
import { connect, operatorClients } from '@rackwright/rpc';
import { freePorts } from '@rackwright/sim/loopback';
import { programArguments, wholeArgument } from '../../program-arguments.ts';
import { installedArguments } from '../installed.ts';
import { measureIronic, whyWithoutIronic } from './ironic.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');
const [operatorsPort = 0, agentsPort = 0] = await freePorts(2);
/** Creations under way at once. */
const creationsAtOnce = 64;
/** With fewer, starting up is too great a part of it. */
const judgedHosts = 1_000;

/** What must be reached for it not to fail, and what is wanted. */
interface Goal {
  readonly what: string;
  readonly floor: number;
  readonly aim: number;
  readonly isBetter: 'more' | 'less';
}
const goals = {
  rate: { what: 'hosts/s', floor: 100, aim: 200, isBetter: 'more' },
  controlPlane: { what: 'ms CPU per host, control plane', floor: 8, aim: 4, isBetter: 'less' },
  agent: { what: 'ms CPU per host, agent', floor: 4, aim: 2, isBetter: 'less' },
  written: { what: 'KiB per host, control plane', floor: 60, aim: 30, isBetter: 'less' },
  ironicRate: { what: "times Ironic's hosts/s", floor: 18, aim: 40, isBetter: 'more' },
  ironicCpu: { what: "of ours in Ironic's CPU per host", floor: 25, aim: 100, isBetter: 'more' },
} as const satisfies Readonly<Record<string, Goal>>;
type Figures = Partial<Record<keyof typeof goals, number>>;

const options = {
  hosts: { type: 'string', default: '1000' },
  'ironic-hosts': { type: 'string', default: '100' },
  profile: { type: 'string', default: '' },
} as const;
const { values } = programArguments({ options });
const hosts = wholeArgument('--hosts', values.hosts);
const ironicHosts = wholeArgument('--ironic-hosts', values['ironic-hosts']);

const folder = mkdtempSync(join(tmpdir(), 'rackwright-bench-'));
const children: ChildProcess[] = [];
try {
  const ours = await bench();
  judge({ ...ours, ...(await besideIronic(ours)) });
} finally {
  await Promise.all(children.map(stop));
  rmSync(folder, { recursive: true, force: true });
}

async function bench(): Promise<
  Required<Pick<Figures, 'rate' | 'controlPlane' | 'agent' | 'written'>>
> {
  writeConfigurations();
  const controlPlane = start('cp', [
    ...installedArguments('controlplane'),
    join(root, 'controlplane/src/main.ts'),
    ...['--config', file('cp.json')],
  ]);
  const clients = await connectClients();
  await clients.racks.createRack({ rackId: 'r1' });
  const { token } = await clients.racks.createJoinToken({ rack: 'racks/r1' });
  const join_ = ['join', `127.0.0.1:${operatorsPort}`, token, '--config', file('agent.json')];
  await run(process.execPath, [join(root, 'agent/src/main.ts'), ...join_]);
  const credential = { username: 'admin', password: 'secret' };
  await clients.credentials.createCredential({ credentialId: 'c1', credential });
  const agentProgram = [join(import.meta.dirname, './agent.ts'), file('agent')];
  const agentProcess = start('agent', [...installedArguments('agent'), ...agentProgram]);
  await until(async () => {
    const rack = await clients.racks.getRack({ name: 'racks/r1' });
    return rack.status?.agentConnected === true;
  });
  const before = await usage(controlPlane, agentProcess);
  const startMs = performance.now();
  const available = countAvailable(clients.hosts);
  await createAll(clients.hosts);
  await available;
  const seconds = (performance.now() - startMs) / 1000;
  const [plane, agent] = report(before, await usage(controlPlane, agentProcess));
  clients.close();
  await Promise.all(children.splice(0).map(stop));
  console.log(`${hosts} hosts from create to available in ${seconds.toFixed(2)} s`);
  const written = (plane?.writtenBytes ?? Number.NaN) / 1024;
  const [controlPlaneMs, agentMs] = [plane?.cpuMs ?? Number.NaN, agent?.cpuMs ?? Number.NaN];
  return { rate: hosts / seconds, controlPlane: controlPlaneMs, agent: agentMs, written };
}

/** The same of Ironic, alone on the machine as ours was. */
async function besideIronic(ours: Figures): Promise<Figures> {
  const why = whyWithoutIronic();
  if (why !== undefined) {
    console.log(`without Ironic: ${why}`);
    return {};
  }
  const { hostsPerSecond, cpuMsPerHost } = await measureIronic(folder, ironicHosts);
  console.log(
    `Ironic: ${hostsPerSecond.toFixed(2)} hosts/s, ${cpuMsPerHost.toFixed(0)} ms CPU per host`,
  );
  const { rate = Number.NaN, controlPlane = Number.NaN, agent = Number.NaN } = ours;
  return { ironicRate: rate / hostsPerSecond, ironicCpu: cpuMsPerHost / (controlPlane + agent) };
}

function file(name: string): string {
  return join(folder, name);
}

function writeConfigurations(): void {
  const address = '127.0.0.1';
  const controlPlane = {
    dataFolder: file('cp'),
    log: { level: 'warn' },
    metrics: { port: 0 },
    operators: { address, port: operatorsPort },
    agents: { address, port: agentsPort, advertise: `127.0.0.1:${agentsPort}` },
    names: ['127.0.0.1', 'localhost'],
  };
  writeFileSync(file('cp.json'), JSON.stringify(controlPlane));
  const agent = { stateFolder: file('agent'), metrics: { port: 0 }, serverAddress: address };
  writeFileSync(file('agent.json'), JSON.stringify(agent));
}

interface Running {
  readonly child: ChildProcess;
  /** Where its counts of fsyncs and transactions are written on request. */
  readonly syncsFile: string;
}

function start(name: string, args: string[]): Running {
  const syncsFile = file(`${name}.syncs`);
  const counter = join(import.meta.dirname, './count-syncs.ts');
  const flags = values.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`];
  const child = spawn(process.execPath, [...flags, '--import', counter, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, RACKWRIGHT_BENCH_SYNCS: syncsFile },
  });
  children.push(child);
  return { child, syncsFile };
}

/** Asks it to end, so that a profile can be written, and insists after a while. */
async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const insist = setTimeout(() => child.kill('SIGKILL'), 5_000);
  if (child.exitCode === null && child.signalCode === null) await ended;
  clearTimeout(insist);
}

async function connectClients() {
  const identity = file('cp/identity');
  await until(() => readFileSync(join(identity, 'admin.token'), 'utf8') !== '');
  const caPem = readFileSync(join(identity, 'ca.pem'), 'utf8');
  const token = readFileSync(join(identity, 'admin.token'), 'utf8').trim();
  const channel = connect({ target: `127.0.0.1:${operatorsPort}`, caPem, serverName: 'localhost' });
  const clients = { ...operatorClients(channel, token), close: () => channel.close() };
  await until(async () => (await clients.racks.listRacks({})).racks.length === 0);
  return clients;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const endMs = Date.now() + 120_000; Date.now() < endMs; ) {
    try {
      if (await holds()) return;
    } catch {
      // Not yet.
    }
    await sleep(50);
  }
  throw new Error('waited in vain for a program to start');
}

type Hosts = Awaited<ReturnType<typeof connectClients>>['hosts'];

async function createAll(client: Hosts): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < hosts; index = next++) {
      const [a, b] = [index >> 8, index & 255];
      const mac = `52:54:00:00:${hex(a)}:${hex(b)}`;
      const bmc = { address: `10.9.${a}.${b}`, credential: 'credentials/c1' };
      const spec = { rack: 'racks/r1', bmc, bootMacs: [mac] };
      await client.createHost({ hostId: `h${index}`, host: { spec } });
    }
  };
  await Promise.all(Array.from({ length: creationsAtOnce }, worker));
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}

/** Resolves when every host is available; as a user would wait, by the watch. */
async function countAvailable(client: Hosts): Promise<void> {
  const done = new Set<string>();
  for await (const event of client.watchHosts({ filter: 'state = available' })) {
    if (event.kind !== WatchHostsResponse_Kind.UPDATED) continue;
    const { name = '', status } = event.host ?? {};
    if (status?.state === HostState.AVAILABLE) done.add(name);
    if (done.size === hosts) return;
  }
}

interface Usage {
  readonly cpuMs: number;
  readonly writes: number;
  readonly writtenBytes: number;
  readonly syncs: number;
  readonly transactions: number;
}

/** CPU and writes of the processes, as the kernel counts them; the rest as count-syncs.ts does. */
async function usage(...processes: Running[]): Promise<Usage[]> {
  return await Promise.all(processes.map(usageOf));
}

async function usageOf(running: Running): Promise<Usage> {
  const read = (name: string) => readFileSync(`/proc/${running.child.pid}/${name}`, 'utf8');
  const io = (key: string) => Number(new RegExp(`^${key}: (\\d+)`, 'm').exec(read('io'))?.[1]);
  const fields = read('stat')
    .replace(/^.*\) /, '')
    .split(' ');
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * 10,
    writes: io('syscw'),
    writtenBytes: io('write_bytes'),
    ...(await syncsOf(running)),
  };
}

async function syncsOf({ child, syncsFile }: Running) {
  rmSync(syncsFile, { force: true });
  child.kill('SIGUSR2');
  await until(() => existsSync(syncsFile));
  const counts: unknown = JSON.parse(readFileSync(syncsFile, 'utf8'));
  return counts as Pick<Usage, 'syncs' | 'transactions'>;
}

/** Prints what one host cost each program, and answers it. */
function report(before: readonly Usage[], after: readonly Usage[]): readonly Usage[] {
  return ['control plane', 'agent'].map((name, index) => {
    const per = (key: keyof Usage) =>
      ((after[index]?.[key] ?? Number.NaN) - (before[index]?.[key] ?? Number.NaN)) / hosts;
    const durable = [`${per('syncs').toFixed(2)} fsyncs`];
    // Each is an fsync of SQLite's log at least, which only SQLite itself could count.
    if (per('transactions') > 0) durable.push(`${per('transactions').toFixed(2)} transactions`);
    console.log(
      `${name}: ${per('cpuMs').toFixed(2)} ms CPU, ${durable.join(' and ')}, ` +
        `${per('writes').toFixed(1)} write calls, ` +
        `${(per('writtenBytes') / 1024).toFixed(1)} KiB written per host`,
    );
    return {
      cpuMs: per('cpuMs'),
      writes: per('writes'),
      writtenBytes: per('writtenBytes'),
      syncs: per('syncs'),
      transactions: per('transactions'),
    };
  });
}

/** Prints each figure beside its goal; fails, and says why, when one misses its floor. */
function judge(figures: Figures): void {
  for (const [name, goal] of Object.entries(goals)) {
    const found = figures[name as keyof typeof goals];
    if (found === undefined) continue;
    const { what, floor, aim, isBetter } = goal;
    console.log(`${found.toFixed(1)} ${what} (floor ${floor}, aim ${aim})`);
    const holds = isBetter === 'more' ? found >= floor : found <= floor;
    if (holds || hosts < judgedHosts) continue;
    console.error(`failed: ${found.toFixed(1)} ${what}, and the floor is ${floor}`);
    process.exitCode = 1;
  }
}
