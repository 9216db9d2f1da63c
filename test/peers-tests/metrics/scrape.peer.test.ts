/**
 * Debian's Prometheus scrapes a control plane and two agents of the demo. promtool takes what they
 * say, and every query of the dashboard has an answer. Scrapers that hang cost their connections.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { compileCache, programFolder } from '../../e2e/programs.ts';
import { until } from '../../lab/processes.ts';
import { peer } from '../peer.ts';
import { dashboardQueries, rulesFile } from './shipped.ts';

const demoProgram = join(import.meta.dirname, '../../../packages/demo/src/main.ts');
const timeout = 600_000;
const waitMs = 240_000;
const script = `
wait all available 180
run host clean h1 --yes
run host clean h2 --yes
wait h1 available 120
wait h2 available 120
say all is cleaned
sleep 500
`;

let folder: string;
const running = new Set<ChildProcess>();
const sockets = new Set<Socket>();

beforeEach(() => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), 'rackwright-scrape-'));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  const ends = [...running].map((child) => once(child, 'close'));
  for (const child of running) child.kill('SIGTERM');
  await Promise.all(ends);
  rmSync(folder, { recursive: true, force: true });
});

function start(path: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const child = spawn(path, args, { env, stdio: 'pipe' });
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  child.once('close', () => running.delete(child));
  return { child, said: () => said };
}

function startDemo() {
  const file = join(folder, 'script.txt');
  writeFileSync(file, script);
  const args = ['--hosts', '2', '--racks', '2', '--programs', programFolder(), '--script', file];
  const env = { PATH: process.env['PATH'], TMPDIR: folder, ...compileCache() };
  return start(process.execPath, [demoProgram, ...args], env);
}

interface Port {
  readonly job: string;
  readonly address: string;
}

/** Where the demo's programs serve their figures; undefined: not all are written down yet. */
function portsOf(): Port[] | undefined {
  const inside = readdirSync(folder, { withFileTypes: true }).find((each) => each.isDirectory());
  if (inside === undefined) return undefined;
  const place = join(folder, inside.name);
  const files = readdirSync(place).filter((name) => /^(controlplane|agent-.*)\.json$/.test(name));
  const texts = files.map((name) => ({ name, text: readFileSync(join(place, name), 'utf8') }));
  // Each configuration is one JSON document: it is there when its last brace is.
  if (texts.length < 3 || !texts.every(({ text }) => text.trimEnd().endsWith('}')))
    return undefined;
  return texts.map(({ name, text }) => {
    const { metrics } = JSON.parse(text);
    const job = name.startsWith('agent') ? 'rackwright-agent' : 'rackwright-controlplane';
    return { job, address: `127.0.0.1:${metrics.port}` };
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function startPrometheus(path: string, ports: readonly Port[]): Promise<string> {
  const jobs = [...new Set(ports.map(({ job }) => job))];
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rulesFile],
    scrape_configs: jobs.map((job) => ({
      job_name: job,
      static_configs: [
        { targets: ports.filter((each) => each.job === job).map(({ address }) => address) },
      ],
    })),
  };
  const file = join(folder, 'prometheus.yaml');
  writeFileSync(file, stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const data = join(folder, 'prometheus');
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${data}`];
  const server = start(path, [...args, `--web.listen-address=${address}`]);
  await until('Prometheus', waitMs, async () => {
    if (server.child.exitCode !== null) throw new Error(server.said());
    return (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok === true;
  });
  return address;
}

/** How many series a query answers; throws what Prometheus says of one that is wrong. */
async function seriesOf(prometheus: string, expr: string): Promise<number> {
  const query = `http://${prometheus}/api/v1/query?query=${encodeURIComponent(expr)}`;
  const answer = (await (await fetch(query)).json()) as {
    readonly status: string;
    readonly error?: string;
    readonly data?: { readonly result: readonly unknown[] };
  };
  if (answer.status !== 'success') throw new Error(`${expr}: ${answer.error ?? ''}`);
  return answer.data?.result.length ?? 0;
}

/** Begins to ask for the figures, and goes no further. */
async function hang(address: string): Promise<void> {
  const [host = '', port = ''] = address.split(':');
  const socket = connect({ host, port: Number(port) });
  sockets.add(socket);
  socket.on('error', () => sockets.delete(socket));
  socket.on('close', () => sockets.delete(socket));
  socket.resume();
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  socket.write('GET /metrics HTTP/1.1\r\n');
}

test('Prometheus scrapes the demo, and every dashboard query has data', {
  timeout,
}, async (context) => {
  const prometheus = peer('prometheus');
  if (prometheus.kind === 'missing') return context.skip(prometheus.reason);
  const promtool = peer('promtool');
  if (promtool.kind === 'missing') return context.skip(promtool.reason);
  const demo = startDemo();
  const orDemo = (what: string) => {
    if (demo.child.exitCode !== null) throw new Error(`${what}: ${demo.said()}`);
  };
  await until('the configuration of the demo', waitMs, () => {
    orDemo('the demo ended');
    return portsOf() !== undefined;
  });
  const ports = portsOf() ?? [];
  expect(ports).toHaveLength(3);
  const at = await startPrometheus(prometheus.path, ports);
  await until('the cleans of the demo', waitMs, () => {
    orDemo('the demo ended');
    return demo.said().includes('all is cleaned');
  });
  for (const { address } of ports) {
    for (const accept of ['text/plain', 'application/openmetrics-text']) {
      const answer = await fetch(`http://${address}/metrics`, { headers: { accept } });
      expect(answer.headers.get('content-type')).toContain(accept);
      const text = await answer.text();
      if (accept === 'text/plain') await checkMetrics(promtool.path, text);
      else expect(text.endsWith('# EOF\n')).toBe(true);
    }
  }
  expect(await seriesOf(at, 'up == 1')).toBe(3);
  const queries = dashboardQueries('30s');
  expect(queries.length).toBeGreaterThan(40);
  const open = new Set(queries);
  await until('data for every query', waitMs, async () => {
    for (const query of open) if ((await seriesOf(at, query.expr)) > 0) open.delete(query);
    return open.size === 0;
  }).catch((cause: unknown) => {
    throw new Error(JSON.stringify([...open], undefined, 1), { cause });
  });
  expect(await seriesOf(at, 'rackwright_runs_total{kind="clean",outcome="succeeded"} > 0')).toBe(1);
  expect(await seriesOf(at, 'ALERTS{alertstate="firing",alertname=~"Rackwright.*"}')).toBe(0);
  const [first] = ports;
  for (let n = 0; n < 40; n += 1) await hang(first?.address ?? '');
  await until('most who hang are turned away', waitMs, () => sockets.size <= 8);
  await until('the others are closed', waitMs, () => sockets.size === 0);
  await until('the scrape goes on', waitMs, async () => (await seriesOf(at, 'up == 1')) === 3);
});

async function checkMetrics(promtool: string, text: string): Promise<void> {
  const { child, said } = start(promtool, ['check', 'metrics']);
  child.stdin?.end(text);
  const [code] = await once(child, 'close');
  expect(said()).toBe('');
  expect(code).toBe(0);
}
