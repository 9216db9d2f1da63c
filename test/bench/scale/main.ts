/**
 * What many hosts cost whoever looks at them: `npm run bench -- scale [--hosts 1000,20000]
 * [--folder FOLDER] [--profile FOLDER]`. The fleet is frozen and has no agents; each host has
 * facts and past runs. Prints the start until the first answer, and for each call p50 and p99,
 * CPU of the control plane, and rows and bytes read of SQLite; then how long an agent waits for the
 * answer to a report while one operator lists, watches and counts in a loop. With `--folder` filled
 * stores stay there for the next time; `--profile` writes a CPU profile of the control plane.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiFailure, HostView } from '@rackwright/messages';
import { connect, type OperatorClients, operatorClients } from '@rackwright/rpc';
import { freePorts } from '@rackwright/sim/loopback';
import { programArguments, wholeArgument } from '../../program-arguments.ts';
import { installedArguments } from '../installed.ts';
import { type Answered, measureAnswers, type Reached } from './answered.ts';
import { addHosts, atOnce, createFleet, creationOf, inParallel, makeHost, rackOf } from './fill.ts';

const root = join(import.meta.dirname, '../../..');
const { values } = programArguments({
  options: {
    hosts: { type: 'string', default: '1000,5000' },
    folder: { type: 'string', default: '' },
    profile: { type: 'string', default: '' },
  },
});
const sizes = values.hosts.split(',').map((each) => wholeArgument('--hosts', each));
if (!sizes.every((size) => Number.isSafeInteger(size) && size >= 100)) {
  console.error('--hosts takes whole numbers from 100');
  process.exit(2);
}
const callsEach = 200;
const creations = 500;
const pageSize = 100;
/** The control plane is at rest once nothing has waited or been under way so many looks long. */
const restLooks = 3;
const restLookMs = 300;
const restWaitMsMax = 600_000;
const idleMs = 70_000;
/** One operator in a loop may make an agent wait so long for its answer, at the p99. */
const answerMsMax = 50;
/** Connections that one call may lose. */
const droppedMax = 5;

/** One size of fleet, and what runs on it. */
class Bench {
  readonly hosts: number;
  readonly folder: string;
  #child: ChildProcess | undefined;
  #ports: readonly number[] = [];

  constructor(hosts: number, folder: string) {
    this.hosts = hosts;
    this.folder = folder;
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  async start(isMeasured: boolean): Promise<OperatorClients> {
    this.#ports = await freePorts(3);
    const [operators = 0, agents = 0, metrics = 0] = this.#ports;
    const address = '127.0.0.1';
    const configuration = {
      dataFolder: this.path('cp'),
      log: { level: 'warn' },
      metrics: { port: metrics },
      operators: { address, port: operators },
      agents: { address, port: agents, advertise: `127.0.0.1:${agents}` },
      names: ['127.0.0.1', 'localhost'],
    };
    writeFileSync(this.path('cp.json'), JSON.stringify(configuration));
    const counter = ['--import', join(import.meta.dirname, './count-rows.ts')];
    const isProfiled = isMeasured && values.profile !== '';
    const profile = isProfiled ? ['--cpu-prof', `--cpu-prof-dir=${values.profile}`] : [];
    const program = [join(root, 'controlplane/src/main.ts'), '--config', this.path('cp.json')];
    const settings = installedArguments('controlplane');
    const args = [...settings, ...(isMeasured ? counter : []), ...profile, ...program];
    const env = { ...process.env, RACKWRIGHT_BENCH_ROWS: this.path('rows.json') };
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'], env });
    return await this.#connect();
  }

  async #connect(): Promise<OperatorClients> {
    const identity = this.path('cp/identity');
    await until(() => readFileSync(join(identity, 'admin.token'), 'utf8') !== '');
    const caPem = readFileSync(join(identity, 'ca.pem'), 'utf8');
    const token = readFileSync(join(identity, 'admin.token'), 'utf8').trim();
    for (;;) {
      const target = `127.0.0.1:${this.#ports[0]}`;
      const channel = connect({ target, caPem, serverName: 'localhost' });
      const clients = operatorClients(channel, token);
      try {
        await clients.fleet.getFleet({});
        return clients;
      } catch {
        channel.close();
        if (this.#child?.exitCode !== null) throw new Error('the control plane has ended');
        await sleep(20);
      }
    }
  }

  reached(clients: OperatorClients): Reached {
    const [operators = 0, agents = 0] = this.#ports;
    const [caFile, tokenFile] = ['ca.pem', 'admin.token'].map((name) =>
      this.path('cp/identity', name),
    ) as [string, string];
    const caPem = readFileSync(caFile, 'utf8');
    return { clients, ports: { operators, agents }, caPem, caFile, tokenFile };
  }

  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#child?.pid}/stat`, 'utf8').replace(/^.*\) /u, '');
    return (Number(fields.split(' ')[11]) + Number(fields.split(' ')[12])) * 10;
  }

  memoryMiB(): number {
    const status = readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/u.exec(status)?.[1]) / 1_024;
  }

  async read(): Promise<{ readonly rows: number; readonly bytes: number }> {
    rmSync(this.path('rows.json'), { force: true });
    this.#child?.kill('SIGUSR2');
    await until(() => existsSync(this.path('rows.json')));
    return JSON.parse(readFileSync(this.path('rows.json'), 'utf8')) as never;
  }

  /**
   * Resolves with the CPU that it took until it came to rest: by what it says that it has to do,
   * since a busy machine gives it little of a core however much that is.
   */
  async rest(): Promise<number> {
    const endMs = Date.now() + restWaitMsMax;
    for (let quiet = 0; Date.now() < endMs; ) {
      await sleep(restLookMs);
      quiet = (await this.#toDo()) === 0 ? quiet + 1 : 0;
      if (quiet >= restLooks) return this.cpuMs();
    }
    throw new Error(`it has not come to rest within ${restWaitMsMax / 1_000} s`);
  }

  /** What waits in its queues or is under way. */
  async #toDo(): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.#ports[2]}/metrics`);
    const queues = /^rackwright_queue_(?:length|active)\{[^}]*\} (\d+)$/gmu;
    const found = [...(await answer.text()).matchAll(queues)];
    if (found.length === 0) throw new Error('the metrics tell of no queue');
    return found.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const insist = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(insist);
  }
}

type Row = Record<string, string>;

for (const size of sizes) {
  const folder = await filled(size);
  const bench = new Bench(size, folder);
  try {
    await measure(bench);
  } finally {
    await bench.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A folder of its own with a store of so many hosts. */
async function filled(size: number): Promise<string> {
  const kept = values.folder === '' ? '' : join(values.folder, `hosts-${size}`);
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-scale-'));
  if (kept === '' || !existsSync(kept)) {
    const bench = new Bench(size, folder);
    console.log(`making ${size} hosts …`);
    try {
      await createFleet(await bench.start(false), size);
    } finally {
      await bench.stop();
    }
    await addHosts(join(folder, 'cp/state.db'), size);
    if (kept === '') return folder;
    mkdirSync(values.folder, { recursive: true });
    cpSync(folder, kept, { recursive: true });
    return folder;
  }
  cpSync(kept, folder, { recursive: true });
  // A control plane refuses keys that others may read, and a copy has not the modes of its source.
  for (const each of ['cp', 'cp/identity']) chmodSync(join(folder, each), 0o700);
  return folder;
}

async function measure(bench: Bench): Promise<void> {
  const { hosts } = bench;
  const startMs = performance.now();
  const clients = await bench.start(true);
  const startedMs = performance.now() - startMs;
  const startCpuMs = bench.cpuMs();
  const restCpuMs = await bench.rest();
  const start = await bench.read();
  console.log(
    `${hosts} hosts: first answer after ${seconds(startedMs)} (CPU ${seconds(startCpuMs)}), ` +
      `at rest after ${seconds(performance.now() - startMs)} (CPU ${seconds(restCpuMs)}), ` +
      `${start.rows} rows and ${mib(start.bytes)} read, ${bench.memoryMiB().toFixed(0)} MiB`,
  );
  const rows: Record<string, Row> = {};
  const list = pager(clients.hosts, '');
  const some = () => `hosts/h${Math.floor(Math.random() * hosts)}`;
  rows['get'] = await timed(bench, () => clients.hosts.getHost({ name: some() }));
  rows['list, page of 100'] = await timed(bench, list);
  rows['by rack, page of 100'] = await timed(bench, pager(clients.hosts, rackOf(7, hosts)));
  const filter = 'labels.nobody = has AND NOT state = new';
  rows['filter without an index'] = await timed(bench, () => clients.hosts.listHosts({ filter }));
  const sorted = { orderBy: 'create_time desc', pageSize, view: HostView.BASIC };
  rows['sorted, page of 100'] = await timed(bench, () => clients.hosts.listHosts(sorted));
  rows['count by state'] = await timed(bench, () => clients.hosts.countHosts({ groupBy: 'state' }));
  rows['explain'] = await timed(bench, () => clients.hosts.explainHost({ name: some() }));
  let next = hosts;
  const one = () =>
    connected(() => makeHost(clients.hosts, creationOf(next, rackOf(next++, hosts))));
  rows['create, one by one'] = await timed(bench, one);
  const [cpuMs, beganMs, before] = [bench.cpuMs(), performance.now(), await bench.read()];
  await inParallel(creations, one);
  const took = performance.now() - beganMs;
  const { rows: after } = await bench.read();
  const perHost = ((bench.cpuMs() - cpuMs) / creations).toFixed(2);
  rows[`create, ${atOnce} at once`] = {
    'p50 / p99 ms': `${((creations / took) * 1_000).toFixed(0)}/s`,
    'CPU ms': perHost,
    'rows read': ((after - before.rows) / creations).toFixed(1),
  };
  console.table(rows);
  await bench.rest();
  const idleFromMs = bench.cpuMs();
  await sleep(idleMs);
  const idle = ((bench.cpuMs() - idleFromMs) / idleMs) * 100;
  console.log(`idle: ${idle.toFixed(1)} % of a core, ${bench.memoryMiB().toFixed(0)} MiB`);
  judgeAnswers(await measureAnswers(bench.reached(clients)));
}

function judgeAnswers({ aloneMs, besideMs, operatorAnswers }: Answered): void {
  const said = (all: readonly number[]) =>
    [0.5, 0.99].map((share) => quantile(all, share).toFixed(1)).join(' / ');
  console.log(
    `answer to a report p50 / p99: alone ${said(aloneMs)} ms, beside an operator in a loop ` +
      `${said(besideMs)} ms (${besideMs.length} reports, ${operatorAnswers} answers to him)`,
  );
  if (quantile(besideMs, 0.99) <= answerMsMax) return;
  console.error(`failed: beside an operator an answer takes more than ${answerMsMax} ms`);
  process.exitCode = 1;
}

function quantile(all: readonly number[], share: number): number {
  const sorted = all.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}

/** Page after page, and from the first one again. */
function pager(client: OperatorClients['hosts'], rack: string): () => Promise<void> {
  let pageToken = '';
  return async () => {
    ({ nextPageToken: pageToken } = await client.listHosts({ rack, pageSize, pageToken }));
  };
}

async function timed(bench: Bench, asked: () => Promise<unknown>): Promise<Row> {
  const call = () => connected(asked);
  for (let warm = 0; warm < 10; warm += 1) await call();
  const [before, cpuMs] = [await bench.read(), bench.cpuMs()];
  const tookMs: number[] = [];
  for (let at = 0; at < callsEach; at += 1) {
    const beganMs = performance.now();
    await call();
    tookMs.push(performance.now() - beganMs);
  }
  const cpu = (bench.cpuMs() - cpuMs) / callsEach;
  const after = await bench.read();
  const at = (share: number) => quantile(tookMs, share).toFixed(1);
  return {
    'p50 / p99 ms': `${at(0.5)} / ${at(0.99)}`,
    'CPU ms': cpu.toFixed(2),
    'rows read': ((after.rows - before.rows) / callsEach).toFixed(1),
    'KiB read': ((after.bytes - before.bytes) / callsEach / 1_024).toFixed(1),
  };
}

/** A machine that is too busy drops connections, which are made anew. */
async function connected<T>(call: () => Promise<T>): Promise<T> {
  for (let left = droppedMax; ; left -= 1) {
    try {
      return await call();
    } catch (error) {
      const isDropped = error instanceof ApiFailure && error.error.kind === 'unavailable';
      if (!isDropped || left === 0) throw error;
      console.error('a connection was dropped: its call counts for too much');
      await sleep(500);
    }
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (const endMs = Date.now() + 120_000; Date.now() < endMs; ) {
    try {
      if (holds()) return;
    } catch {
      // Not yet.
    }
    await sleep(20);
  }
  throw new Error('waited in vain for the control plane');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function mib(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
