/**
 * What many agents cost the control plane: `npm run bench -- agents [--agents N]`. The control
 * plane is a process of its own with its own store; the agents are lean ones (`lean-agent.ts`) in
 * another, over real TLS; a bare grpc-js server that echoes stands beside for comparison. Fewer
 * agents than the floor are not judged.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect, HostGoal, type OperatorClients, operatorClients } from '@rackwright/api';
import { freePorts, selfSigned } from '@rackwright/sim/loopback';
import type { Measured } from './client.ts';
import type { Credentials } from './lean-agent.ts';
import { Program, type Usage } from './program.ts';

const root = join(import.meta.dirname, '../../..');
const floorAgents = 1_000;
/** The first rack measures, the last one makes noise; these many hosts each. */
const measuringHosts = 16;
const noisyHosts = 64;
/** Verifications for one figure, so many at once. */
const samples = 400;
const samplesAtOnce = 4;
const idleMs = 20_000;
/** A flood may make an acknowledgement so many times slower at its p99. */
const floodFactorMax = 3;

const { values } = parseArgs({ options: { agents: { type: 'string', default: '1000' } } });
const agents = Number(values.agents);
if (!Number.isSafeInteger(agents) || agents < 2) {
  console.error('--agents takes a whole number from 2');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'rackwright-bench-'));
const programs: Program[] = [];
const start = (file: string, ...args: string[]): Program => {
  const program = new Program(file, args);
  programs.push(program);
  return program;
};
try {
  await bench();
} finally {
  await Promise.all(programs.map((program) => program.stop()));
  rmSync(folder, { recursive: true, force: true });
}

type Rows = Record<string, Record<string, string>>;

async function bench(): Promise<void> {
  const [operatorsPort = 0, agentsPort = 0] = await freePorts(2);
  writeConfiguration(operatorsPort, agentsPort);
  const args = ['--config', join(folder, 'cp.json')];
  const controlPlane = start(join(root, 'controlplane/src/main.ts'), ...args);
  const clients = await connectOperator(operatorsPort);
  const client = start(join(import.meta.dirname, './client.ts'));
  console.log(`enrolling ${agents} agents …`);
  const credentials = await enrolAll(clients, client, operatorsPort);
  const hosts = await addHosts(clients);
  const rows: Rows = {};
  const before = controlPlane.usage();
  const firstMs = await client.ask<number>({
    ...{ kind: 'connect', port: agentsPort, from: 0, to: agents - 1 },
  });
  await sleep(2_000);
  const connected = controlPlane.usage();
  rows['agents connected'] = { 'control plane': String(agents - 1) };
  rows['first connection of all, s'] = seconds(firstMs);
  rows['memory for one agent, KiB'] = perAgent(before, connected);
  rows['idle CPU, % of a core'] = await idleCpu(controlPlane);
  const beats = (await client.ask<Measured>({ kind: 'measured' })).renewedMs;
  rows['heartbeat p50 / p99, ms'] = spread(beats);
  const verify = () => acknowledgements(clients, client, hosts.measuring);
  await verify();
  const rest = await verify();
  rows['ack at rest p50 / p99, ms'] = spread(rest);
  const noisy = start(join(import.meta.dirname, './client.ts'));
  await noisy.ask({ kind: 'know', credentials: credentials.slice(-1) });
  await noisy.ask({ kind: 'noise', port: agentsPort, index: 0, hostUids: hosts.noisy });
  rows['ack beside a noisy rack p50 / p99, ms'] = spread(await verify());
  const said = await noisy.ask<number>({ kind: 'quiet' });
  rows['messages of the noisy rack'] = { 'control plane': String(said) };
  const peakBefore = controlPlane.usage();
  await noisy.ask({ kind: 'flood', ports: [agentsPort, operatorsPort] });
  await sleep(2_000);
  const flooded = await verify();
  rows['ack under flood p50 / p99, ms'] = spread(flooded);
  const made = await noisy.ask<number>({ kind: 'quiet' });
  rows['connections of the flood'] = { 'control plane': String(made) };
  rows['peak RSS under flood, MiB'] = peak(peakBefore, controlPlane.usage());
  await storm(rows, controlPlane, client, agentsPort);
  await client.ask({ kind: 'cut' });
  await controlPlane.stop();
  await compareWithEcho(rows, credentials);
  console.table(rows);
  judge(rest, flooded);
}

function writeConfiguration(operators: number, port: number): void {
  const address = '127.0.0.1';
  const configuration = {
    dataFolder: join(folder, 'cp'),
    log: { level: 'error' },
    operators: {
      address,
      port: operators,
      // All agents of this machine enrol at once.
      limits: { openCallsPerSecond: 100_000, openCallsBurst: 100_000 },
    },
    agents: { address, port, advertise: `127.0.0.1:${port}` },
    names: ['127.0.0.1', 'localhost'],
  };
  writeFileSync(join(folder, 'cp.json'), JSON.stringify(configuration));
}

async function connectOperator(port: number): Promise<OperatorClients> {
  const identity = join(folder, 'cp/identity');
  for (let tries = 0; tries < 600; tries += 1) {
    try {
      const caPem = readFileSync(join(identity, 'ca.pem'), 'utf8');
      const token = readFileSync(join(identity, 'admin.token'), 'utf8').trim();
      const channel = connect({ target: `127.0.0.1:${port}`, caPem, serverName: 'localhost' });
      const clients = operatorClients(channel, token);
      await clients.racks.listRacks({});
      return clients;
    } catch {
      await sleep(100);
    }
  }
  throw new Error('the control plane did not start');
}

async function manyAtOnce(count: number, atOnce: number, work: (index: number) => Promise<void>) {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function enrolAll(
  { racks }: OperatorClients,
  client: Program,
  port: number,
): Promise<Credentials[]> {
  const tokens: string[] = [];
  await manyAtOnce(agents, 32, async (index) => {
    await racks.createRack({ rackId: `r${index}` });
    tokens[index] = (await racks.createJoinToken({ rack: `racks/r${index}` })).token;
  });
  const caPem = readFileSync(join(folder, 'cp/identity/ca.pem'), 'utf8');
  return client.ask({ kind: 'enrol', target: `127.0.0.1:${port}`, caPem, tokens });
}

interface BenchHosts {
  /** Names of those of the first rack. */
  readonly measuring: readonly string[];
  /** Uids of those of the last rack. */
  readonly noisy: readonly string[];
}

async function addHosts({ hosts, credentials }: OperatorClients): Promise<BenchHosts> {
  const credential = { username: 'admin', password: 'secret' };
  await credentials.createCredential({ credentialId: 'c1', credential });
  const create = async (rack: number, prefix: string, count: number, net: number) => {
    const all: { readonly name: string; readonly uid: string }[] = [];
    await manyAtOnce(count, 16, async (index) => {
      const bmc = { address: `10.${net}.0.${index}`, credential: 'credentials/c1' };
      const hex = index.toString(16).padStart(2, '0');
      const bootMacs = [`52:54:00:00:0${net}:${hex}`];
      const goal = HostGoal.MANAGEABLE;
      const spec = { rack: `racks/r${rack}`, bmc, bootMacs, goal };
      all[index] = await hosts.createHost({ hostId: `${prefix}${index}`, host: { spec } });
    });
    return all;
  };
  const measuring = await create(0, 'm', measuringHosts, 1);
  const noisy = await create(agents - 1, 'n', noisyHosts, 2);
  return { measuring: measuring.map(({ name }) => name), noisy: noisy.map(({ uid }) => uid) };
}

/** Verifies hosts again and again; the agent's reports say how long their answers took. */
async function acknowledgements(
  { hosts }: OperatorClients,
  client: Program,
  names: readonly string[],
): Promise<readonly number[]> {
  await client.ask({ kind: 'measure' });
  const own = Math.floor(names.length / samplesAtOnce);
  const worker = async (index: number) => {
    for (let round = 0; round < samples / samplesAtOnce; round += 1) {
      const name = names[index * own + (round % own)] ?? '';
      await verifyOnce(hosts, name);
    }
  };
  await Promise.all(Array.from({ length: samplesAtOnce }, (_, index) => worker(index)));
  return (await client.ask<Measured>({ kind: 'measured' })).acknowledgedMs;
}

async function verifyOnce(hosts: OperatorClients['hosts'], name: string): Promise<void> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    try {
      await hosts.verifyHost({ name });
      return;
    } catch {
      // The last verification of this host is not over yet.
      await sleep(2);
    }
  }
  throw new Error(`${name} takes no verification`);
}

async function idleCpu(program: Program): Promise<Record<string, string>> {
  const before = program.usage();
  await sleep(idleMs);
  const used = program.usage().cpuMs - before.cpuMs;
  return { 'control plane': ((used / idleMs) * 100).toFixed(1) };
}

async function storm(
  rows: Rows,
  controlPlane: Program,
  client: Program,
  port: number,
): Promise<void> {
  await client.ask({ kind: 'cut' });
  await sleep(1_000);
  const before = controlPlane.usage();
  controlPlane.forgetPeak();
  const tookMs = await client.ask<number>({ kind: 'connect', port, from: 0, to: agents - 1 });
  rows['reconnect storm, s'] = seconds(tookMs);
  rows['peak RSS in the storm, MiB'] = peak(before, controlPlane.usage());
}

/** The same streams, heartbeats and certificates, and nothing behind them. */
async function compareWithEcho(rows: Rows, credentials: readonly Credentials[]): Promise<void> {
  const { certificatePem, keyPem } = await selfSigned('echo', 'localhost');
  writeFileSync(join(folder, 'chain.pem'), certificatePem);
  writeFileSync(join(folder, 'key.pem'), keyPem);
  writeFileSync(join(folder, 'ca.pem'), credentials[0]?.caPem ?? '');
  const server = start(join(import.meta.dirname, './echo-server.ts'), folder);
  const { port } = await server.said<{ port: number }>();
  const client = start(join(import.meta.dirname, './client.ts'));
  const known = credentials.slice(0, -1).map((each) => ({ ...each, caPem: certificatePem }));
  await client.ask({ kind: 'know', credentials: known });
  const add = (row: string, cell: Record<string, string>) => {
    rows[row] = { ...rows[row], 'bare echo': cell['control plane'] ?? '' };
  };
  const before = server.usage();
  const firstMs = await client.ask<number>({ kind: 'echo', port, count: known.length });
  await sleep(2_000);
  add('agents connected', { 'control plane': String(known.length) });
  add('first connection of all, s', seconds(firstMs));
  add('memory for one agent, KiB', perAgent(before, server.usage()));
  add('idle CPU, % of a core', await idleCpu(server));
  add(
    'heartbeat p50 / p99, ms',
    spread((await client.ask<Measured>({ kind: 'measured' })).renewedMs),
  );
  await client.ask({ kind: 'cut' });
  await sleep(1_000);
  const idle = server.usage();
  server.forgetPeak();
  const againMs = await client.ask<number>({ kind: 'echo', port, count: known.length });
  add('reconnect storm, s', seconds(againMs));
  add('peak RSS in the storm, MiB', peak(idle, server.usage()));
}

function seconds(ms: number): Record<string, string> {
  return { 'control plane': (ms / 1_000).toFixed(2) };
}

function perAgent(before: Usage, after: Usage): Record<string, string> {
  return { 'control plane': ((after.rssKiB - before.rssKiB) / (agents - 1)).toFixed(0) };
}

function peak(before: Usage, after: Usage): Record<string, string> {
  const [from, to] = [before.rssKiB / 1_024, after.peakKiB / 1_024];
  return { 'control plane': `${from.toFixed(0)} → ${to.toFixed(0)}` };
}

function quantile(all: readonly number[], share: number): number {
  const sorted = [...all].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function spread(all: readonly number[]): Record<string, string> {
  const [half, most] = [quantile(all, 0.5), quantile(all, 0.99)];
  return { 'control plane': `${half.toFixed(1)} / ${most.toFixed(1)} (${all.length})` };
}

function judge(rest: readonly number[], flooded: readonly number[]): void {
  const factor = quantile(flooded, 0.99) / quantile(rest, 0.99);
  console.log(`under flood an acknowledgement takes ${factor.toFixed(1)} times as long (p99)`);
  if (agents < floorAgents) {
    console.log(`not judged: fewer than ${floorAgents} agents`);
    return;
  }
  if (factor > floodFactorMax) {
    console.error(`failed: more than ${floodFactorMax} times`);
    process.exitCode = 1;
  }
}
