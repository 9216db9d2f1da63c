/**
 * What many agents cost the control plane: `npm run bench -- agents [--agents N] [--brief]
 * [--idle] [--realtime] [--profile FOLDER]`. The control plane is a process of its own with its own
 * store; so are the agents, lean ones (`lean-agent.ts`) over real TLS, the one of them that is
 * measured, a noisy one, and a flood at a bounded rate (`flood.ts`). A bare grpc-js server that
 * echoes stands beside for comparison. Fewer agents than the floor are not judged. What makes work
 * comes after what is measured; `--realtime` (root) keeps both from others on the machine;
 * `--brief` leaves out noise and echo, `--idle` noise and flood; `--profile` writes the control
 * plane's CPU profile there.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HostGoal } from '@rackwright/messages';
import { connect, type OperatorClients, operatorClients } from '@rackwright/rpc';
import { freePorts, selfSigned } from '@rackwright/sim/loopback';
import { programArguments, wholeArgument } from '../../program-arguments.ts';
import { installedArguments } from '../installed.ts';
import type { Measured } from './client.ts';
import type { Flooded, FloodPorts } from './flood.ts';
import type { Credentials } from './lean-agent.ts';
import { Program, type Rank, rankProcess, type Usage } from './program.ts';
import { stubbornly } from './stubborn.ts';

const root = join(import.meta.dirname, '../../..');
const floorAgents = 1_000;
/** Racks that are made, and their agents enrolled, before the next ones are. */
const enrolledTogether = 500;
/**
 * More agents than this are more than a control plane lets in at its defaults, and come in faster
 * than those let them where all are to be back within a minute.
 */
const agentsAtDefaults = 7_000;
const handshakesOfMany = 250;
/** The first rack measures, the last one makes noise; these many hosts each. */
const measuringHosts = 16;
const noisyHosts = 64;
/**
 * Verifications under way at once, and the pause after each: at rest the control plane shall not
 * be full already, or everything that comes on top looks like waiting.
 */
const verifyAtOnce = 4;
const verifyPauseMs = 30;
/** By then a host has taken its next verification, however much else there is to do. */
const verifyMsMax = 120_000;
/** At rest and under flood by turns, so that both see the same of what else the machine does. */
const rounds = 3;
const sliceMs = 10_000;
const settleMs = 2_000;
/** Until a flood is what it is called: its bursts used up, what waits at its end, what is held. */
const floodSettleMs = 8_000;
/** Storms until so long has been measured. */
const stormsMs = 30_000;
const idleMs = 20_000;
/** A flood may make an acknowledgement so many times slower at its p99. */
const floodFactorMax = 3;
/** What the control plane may take under flood beside what it took before it, in KiB. */
const floodGrowthKiBMax = 300 * 1_024;
/** Idle agents may cost so many times the echo, or so much of a core, whichever is more. */
const idleFactorMax = 1.5;
const idlePercentMax = 30;
/** In which all agents are to be back. */
const stormMsMax = 60_000;

const { values } = programArguments({
  options: {
    agents: { type: 'string', default: '1000' },
    brief: { type: 'boolean', default: false },
    idle: { type: 'boolean', default: false },
    realtime: { type: 'boolean', default: false },
    profile: { type: 'string', default: '' },
  },
});
const agents = wholeArgument('--agents', values.agents);
if (!Number.isSafeInteger(agents) || agents < 3) {
  console.error('--agents takes a whole number from 3');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'rackwright-bench-'));
const programs: Program[] = [];
const start = (rank: Rank, file: string, ...args: string[]): Program => {
  const program = new Program(file, args, rank, { isRealtime: values.realtime });
  programs.push(program);
  return program;
};
function startControlPlane(): Program {
  const flags = ['--cpu-prof', `--cpu-prof-dir=${values.profile}`];
  const program = new Program(
    join(root, 'controlplane/src/main.ts'),
    ['--config', join(folder, 'cp.json')],
    'measured',
    {
      isRealtime: values.realtime,
      execArgv: [...installedArguments('controlplane'), ...(values.profile === '' ? [] : flags)],
    },
  );
  programs.push(program);
  return program;
}
const startClient = (rank: Rank) => start(rank, join(import.meta.dirname, './client.ts'));
try {
  rankProcess(process.pid, 'measured', values.realtime);
  await bench();
} finally {
  await Promise.all(programs.map((program) => program.stop()));
  rmSync(folder, { recursive: true, force: true });
}

type Rows = Record<string, Record<string, string>>;

/** The programs of one bench and what they have shown. */
interface Scene {
  readonly ports: FloodPorts;
  readonly clients: OperatorClients;
  readonly controlPlane: Program;
  /** The agent that is measured. */
  readonly probe: Program;
  /** All the others. */
  readonly fleet: Program;
  readonly hosts: BenchHosts;
  readonly credentials: readonly Credentials[];
  readonly rows: Rows;
}

async function bench(): Promise<void> {
  const [operators = 0, agentsPort = 0] = await freePorts(2);
  // All agents of this machine enrol at once, and as often as an answer is lost.
  writeConfiguration(operators, agentsPort, { openCallsBurst: 2 * agents + 100 });
  const enrolling = startControlPlane();
  const enrollers = await connectOperator(operators);
  const [probe, fleet] = [startClient('measured'), startClient('load')];
  const rows: Rows = {};
  const credentials = await enrolAll(enrollers, fleet, operators, rows, enrolling);
  await probe.ask({ kind: 'know', credentials });
  const hosts = await addHosts(enrollers);
  // What is measured is at its defaults.
  await enrolling.stop();
  writeConfiguration(operators, agentsPort, {});
  const controlPlane = startControlPlane();
  const clients = await connectOperator(operators);
  const ports = { operators, agents: agentsPort };
  const scene = { ports, clients, controlPlane, probe, fleet, hosts, credentials, rows };
  await connectAll(scene);
  if (!values.brief && !values.idle) await besideNoise(scene);
  const rest = values.idle ? await measure(scene, sliceMs) : await underFlood(scene);
  const { acknowledgedMs, tookMs } = await inStorms(scene);
  for (const program of [probe, fleet]) await program.ask({ kind: 'cut' });
  await controlPlane.stop();
  if (!values.brief) await compareWithEcho(rows, credentials);
  console.table(rows);
  if (!values.brief) judgeIdle(rows);
  judge('in a reconnect storm', rest, acknowledgedMs);
  judgeStorms(tookMs);
}

async function connectAll({ ports, controlPlane, probe, fleet, rows }: Scene): Promise<void> {
  const before = controlPlane.usage();
  await probe.ask({ kind: 'connect', port: ports.agents, from: 0, to: 1 });
  const task = { kind: 'connect', port: ports.agents, from: 1, to: agents - 1 } as const;
  const firstMs = await fleet.ask<number>(task);
  await sleep(settleMs);
  rows['agents connected'] = { 'control plane': String(agents - 1) };
  rows['first connection of all, s'] = seconds(firstMs);
  rows['memory for one agent, KiB'] = perAgent(before, controlPlane.usage());
  rows['idle CPU, % of a core'] = await idleCpu(controlPlane);
  const { renewedMs, breaks } = await fleet.ask<Measured>({ kind: 'measured' });
  rows['heartbeat p50 / p99, ms'] = spread(renewedMs);
  rows['sessions that broke while idle'] = { 'control plane': String(breaks) };
}

async function besideNoise(scene: Scene): Promise<void> {
  const { ports, hosts, credentials, rows } = scene;
  const noisy = startClient('load');
  await noisy.ask({ kind: 'know', credentials: credentials.slice(-1) });
  await noisy.ask({ kind: 'noise', port: ports.agents, index: 0, hostUids: hosts.noisy });
  rows['ack beside a noisy rack p50 / p99, ms'] = spread(await measure(scene, sliceMs));
  const said = await noisy.ask<number>({ kind: 'quiet' });
  rows['messages of the noisy rack'] = { 'control plane': String(said) };
  await noisy.stop();
}

/** Acknowledgements at rest; judges those under flood. */
async function underFlood(scene: Scene): Promise<readonly number[]> {
  const { ports, controlPlane, rows } = scene;
  const flooder = startClient('load');
  // What is compiled and cached by the first calls is no part of either.
  await measure(scene, settleMs);
  const [rest, flooded]: [number[], number[]] = [[], []];
  const before = controlPlane.usage();
  controlPlane.forgetPeak();
  let [floodCpuMs, controlPlaneCpuMs] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    rest.push(...(await measure(scene, sliceMs)));
    await flooder.ask({ kind: 'flood', ports });
    await sleep(floodSettleMs);
    const [floodBefore, planeBefore] = [flooder.usage(), controlPlane.usage()];
    flooded.push(...(await measure(scene, sliceMs)));
    floodCpuMs += flooder.usage().cpuMs - floodBefore.cpuMs;
    controlPlaneCpuMs += controlPlane.usage().cpuMs - planeBefore.cpuMs;
    console.log('the flood, by kind:');
    const { counts, defects } = await flooder.ask<Flooded>({ kind: 'quiet' });
    console.table(
      Object.entries(counts).map(([kind, { answers, ...count }]) => ({
        kind,
        ...count,
        answers: JSON.stringify(answers),
      })),
    );
    judgeFlood(defects);
    await sleep(settleMs);
  }
  const after = controlPlane.usage();
  const share = (ms: number) => `${((ms / rounds / sliceMs) * 100).toFixed(0)} %`;
  rows['ack at rest p50 / p99, ms'] = spread(rest);
  rows['ack under flood p50 / p99, ms'] = spread(flooded);
  rows['CPU under flood, of the flood itself'] = {
    'control plane': `${share(controlPlaneCpuMs)}, ${share(floodCpuMs)}`,
  };
  rows['peak RSS under flood, MiB'] = peak(before, after);
  await flooder.stop();
  judge('under flood', rest, flooded);
  judgeGrowth(after.peakKiB - before.rssKiB);
  return rest;
}

/** All but one agent are cut and come again at once; that one's acknowledgements meanwhile. */
async function inStorms(scene: Scene) {
  const { ports, controlPlane, fleet, rows } = scene;
  const acknowledgedMs: number[] = [];
  const tookMs: number[] = [];
  const before = controlPlane.usage();
  controlPlane.forgetPeak();
  for (let measuredMs = 0; measuredMs < stormsMs; measuredMs += tookMs.at(-1) ?? stormsMs) {
    await fleet.ask({ kind: 'cut' });
    await sleep(1_000);
    const task = { kind: 'connect', port: ports.agents, from: 1, to: agents - 1 } as const;
    const storm = fleet.ask<number>(task);
    acknowledgedMs.push(...(await measure(scene, storm)));
    tookMs.push(await storm);
  }
  rows['reconnect storm, s'] = {
    'control plane': tookMs.map((ms) => (ms / 1_000).toFixed(1)).join(' '),
  };
  rows['ack in the storm p50 / p99, ms'] = spread(acknowledgedMs);
  rows['peak RSS in the storm, MiB'] = peak(before, controlPlane.usage());
  return { acknowledgedMs, tookMs };
}

function writeConfiguration(operators: number, port: number, limits: object): void {
  const address = '127.0.0.1';
  const many = { connectionsMax: agents + 1_000, handshakesPerSecond: handshakesOfMany };
  const agentLimits = agents > agentsAtDefaults ? { limits: many } : {};
  const configuration = {
    dataFolder: join(folder, 'cp'),
    log: { level: 'error' },
    metrics: { port: 0 },
    operators: { address, port: operators, limits },
    agents: { address, port, advertise: `127.0.0.1:${port}`, ...agentLimits },
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

/** Some at a time, so that no join token ends before its agent comes. */
async function enrolAll(
  { racks }: OperatorClients,
  client: Program,
  port: number,
  rows: Rows,
  controlPlane: Program,
): Promise<readonly Credentials[]> {
  const caPem = readFileSync(join(folder, 'cp/identity/ca.pem'), 'utf8');
  const [startMs, before] = [performance.now(), controlPlane.usage()];
  for (let from = 0; from < agents; from += enrolledTogether) {
    console.log(`enrolled ${from} of ${agents} agents …`);
    const tokens: string[] = [];
    await manyAtOnce(Math.min(enrolledTogether, agents - from), 32, async (index) => {
      const rackId = `r${from + index}`;
      const request = { rackId, requestId: `bench-${rackId}` };
      await stubbornly((deadlineMs) => racks.createRack(request, { deadlineMs }));
      const rack = `racks/${rackId}`;
      const made = await stubbornly((deadlineMs) =>
        racks.createJoinToken({ rack }, { deadlineMs }),
      );
      tokens[index] = made.token;
    });
    await client.ask({ kind: 'enrol', target: `127.0.0.1:${port}`, caPem, tokens });
  }
  rows['enrolment of all, s'] = seconds(performance.now() - startMs);
  const cpuMs = controlPlane.usage().cpuMs - before.cpuMs;
  rows['enrolment of one agent, ms CPU'] = { 'control plane': (cpuMs / agents).toFixed(1) };
  return client.ask({ kind: 'enrolled' });
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
async function measure(
  { clients: { hosts }, probe, hosts: { measuring } }: Scene,
  until: number | Promise<unknown>,
): Promise<readonly number[]> {
  await probe.ask({ kind: 'measure' });
  const own = Math.floor(measuring.length / verifyAtOnce);
  let isOver = false;
  const over = typeof until === 'number' ? sleep(until) : until;
  const worker = async (index: number) => {
    for (let round = 0; !isOver; round += 1) {
      await verifyOnce(hosts, measuring[index * own + (round % own)] ?? '');
      await sleep(verifyPauseMs);
    }
  };
  const workers = Promise.all(Array.from({ length: verifyAtOnce }, (_, index) => worker(index)));
  await over;
  isOver = true;
  await workers;
  return (await probe.ask<Measured>({ kind: 'measured' })).acknowledgedMs;
}

async function verifyOnce(hosts: OperatorClients['hosts'], name: string): Promise<void> {
  for (const startMs = performance.now(); ; ) {
    try {
      await hosts.verifyHost({ name });
      return;
    } catch (error) {
      if (performance.now() - startMs > verifyMsMax) {
        throw new Error(`${name} takes no verification`, { cause: error });
      }
      // The last verification of this host is not over yet.
      await sleep(2);
    }
  }
}

async function idleCpu(program: Program): Promise<Record<string, string>> {
  const before = program.usage();
  await sleep(idleMs);
  const used = program.usage().cpuMs - before.cpuMs;
  return { 'control plane': ((used / idleMs) * 100).toFixed(1) };
}

/** The same streams, heartbeats and certificates, and nothing behind them. */
async function compareWithEcho(rows: Rows, credentials: readonly Credentials[]): Promise<void> {
  const { certificatePem, keyPem } = await selfSigned('echo', 'localhost');
  writeFileSync(join(folder, 'chain.pem'), certificatePem);
  writeFileSync(join(folder, 'key.pem'), keyPem);
  writeFileSync(join(folder, 'ca.pem'), credentials[0]?.caPem ?? '');
  const server = start('measured', join(import.meta.dirname, './echo-server.ts'), folder);
  const { port } = await server.said<{ port: number }>();
  const client = startClient('load');
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

function judge(when: string, rest: readonly number[], loaded: readonly number[]): void {
  const factor = quantile(loaded, 0.99) / quantile(rest, 0.99);
  console.log(`${when} an acknowledgement takes ${factor.toFixed(1)} times as long (p99)`);
  if (agents < floorAgents) {
    console.log(`not judged: fewer than ${floorAgents} agents`);
  } else if (!(factor <= floodFactorMax)) {
    console.error(`failed: more than ${floodFactorMax} times`);
    process.exitCode = 1;
  }
}

function judgeIdle({ 'idle CPU, % of a core': row = {} }: Rows): void {
  const [ours, echo] = [Number(row['control plane']), Number(row['bare echo'])];
  console.log(`idle agents cost ${(ours / echo).toFixed(1)} times what the echo does`);
  if (ours <= Math.max(idleFactorMax * echo, idlePercentMax)) return;
  console.error(`failed: more than ${idleFactorMax} times, and than ${idlePercentMax} % of a core`);
  process.exitCode = 1;
}

function judgeStorms(tookMs: readonly number[]): void {
  if (tookMs.every((ms) => ms <= stormMsMax)) return;
  console.error(`failed: a reconnect storm took longer than ${stormMsMax / 1_000} s`);
  process.exitCode = 1;
}

/** A flood of which a kind does something else says nothing of that kind. */
function judgeFlood(defects: readonly string[]): void {
  for (const defect of defects) console.error(`failed: of the flood, ${defect}`);
  if (defects.length > 0) process.exitCode = 1;
}

function judgeGrowth(growthKiB: number): void {
  if (growthKiB <= floodGrowthKiBMax) return;
  const [grown, most] = [growthKiB, floodGrowthKiBMax].map((kib) => Math.round(kib / 1_024));
  console.error(`failed: under flood the control plane took ${grown} MiB more, not ${most}`);
  process.exitCode = 1;
}
