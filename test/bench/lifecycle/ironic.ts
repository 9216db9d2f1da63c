/**
 * OpenStack Ironic as Debian packages it, for comparison: `npm run peers -- --ironic` keeps a root
 * with it. API and conductor are one process over SQLite, without a message bus and without
 * Keystone: the least that it can be. Its hosts are instant too (`fake-hardware`), and go the same
 * way as ours: enrolled, verified, inspected, cleaned, available.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '@rackwright/sim/loopback';
import { IRONIC_ROOT } from '../../peers.ts';
import { CpuMeter } from '../beside/cpu.ts';

const callsAtOnce = 16;
const lookEveryMs = 200;
const startMsMax = 120_000;
/** Until all hosts are available. */
const workMsMax = 1_200_000;
/** The API of the release that Debian 12 has. */
const apiVersion = '1.80';

/** What one host cost. */
export interface Beside {
  readonly hostsPerSecond: number;
  readonly cpuMsPerHost: number;
}

/** Why it is left out, or undefined. */
export function whyWithoutIronic(): string | undefined {
  if (!existsSync(IRONIC_ROOT)) return '"npm run peers -- --ironic" fetches it';
  return process.getuid?.() === 0 ? undefined : 'it needs root, for its own root folder';
}

/** Leads so many hosts from enrolment to available; leaves nothing behind but `folder`. */
export async function measureIronic(folder: string, hosts: number): Promise<Beside> {
  const root = join(folder, 'ironic');
  mkdirSync(root);
  execFileSync('tar', ['-xf', IRONIC_ROOT, '-C', root]);
  const [apiPort = 0, rpcPort = 0] = await freePorts(2);
  writeFileSync(join(root, 'etc/ironic/ironic.conf'), configuration(apiPort, rpcPort));
  execFileSync('chroot', [root, 'ironic-dbsync', 'create_schema'], { stdio: 'ignore' });
  const log = openSync(join(folder, 'ironic.log'), 'w');
  const server = spawn('chroot', [root, 'ironic'], { stdio: ['ignore', log, log] });
  try {
    const api = new Api(`http://127.0.0.1:${apiPort}`);
    await listening(api, server, join(folder, 'ironic.log'));
    return await measure(api, server.pid ?? 0, hosts);
  } finally {
    await stop(server);
  }
}

function configuration(apiPort: number, rpcPort: number): string {
  const kinds = [
    'bios boot console deploy firmware inspect management',
    'network power raid rescue storage vendor',
  ].flatMap((line) => line.split(' '));
  const simple: Record<string, string> = { network: 'noop', storage: 'noop', rescue: 'no-rescue' };
  const interfaces = kinds.flatMap((kind) => {
    const name = simple[kind] ?? 'fake';
    return [`enabled_${kind}_interfaces = ${name}`, `default_${kind}_interface = ${name}`];
  });
  return `[DEFAULT]
auth_strategy = noauth
rpc_transport = json-rpc
enabled_hardware_types = fake-hardware
host = bench
my_ip = 127.0.0.1
${interfaces.join('\n')}
[api]
host_ip = 127.0.0.1
port = ${apiPort}
[json_rpc]
auth_strategy = noauth
host_ip = 127.0.0.1
port = ${rpcPort}
[conductor]
automated_clean = true
[database]
connection = sqlite:////var/lib/ironic/ironic.sqlite
[dhcp]
dhcp_provider = none
`;
}

interface Node {
  readonly uuid: string;
  readonly provision_state: string;
  readonly target_provision_state: string | null;
}

class Api {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  async call(method: string, path: string, body?: object): Promise<unknown> {
    const headers = {
      'Content-Type': 'application/json',
      'X-OpenStack-Ironic-API-Version': apiVersion,
    };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${this.#base}${path}`, { method, headers, ...sent });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  async nodes(): Promise<readonly Node[]> {
    const fields = 'fields=uuid,provision_state,target_provision_state';
    const found = await this.call('GET', `/v1/nodes?limit=1000&${fields}`);
    return (found as { readonly nodes: readonly Node[] }).nodes;
  }
}

async function listening(api: Api, server: ChildProcess, log: string): Promise<void> {
  const endMs = performance.now() + startMsMax;
  while (performance.now() < endMs && server.exitCode === null) {
    try {
      const drivers = (await api.call('GET', '/v1/drivers')) as { readonly drivers: unknown[] };
      if (drivers.drivers.length > 0) return;
    } catch {
      // Not yet.
    }
    await sleep(lookEveryMs);
  }
  throw new Error(`Ironic did not start: ${readFileSync(log, 'utf8').slice(-2_000)}`);
}

async function measure(api: Api, pid: number, hosts: number): Promise<Beside> {
  const meter = new CpuMeter(pid);
  try {
    const [startMs, startCpuMs] = [performance.now(), meter.readMs()];
    await atOnce(
      Array.from({ length: hosts }, (_, at) => at),
      (at) => api.call('POST', '/v1/nodes', { driver: 'fake-hardware', name: `h${at}` }),
    );
    await leadAll(api, hosts, startMs + workMsMax);
    const ms = performance.now() - startMs;
    const cpuMs = meter.readMs() - startCpuMs;
    return { hostsPerSecond: (1_000 * hosts) / ms, cpuMsPerHost: cpuMs / hosts };
  } finally {
    meter.stop();
  }
}

/** What is asked of a host next, by the state that it rests in. */
const nextVerb: Readonly<Record<string, string>> = { enroll: 'manage', inspected: 'provide' };

async function leadAll(api: Api, hosts: number, endMs: number): Promise<void> {
  const inspected = new Set<string>();
  while (performance.now() < endMs) {
    const nodes = await api.nodes();
    if (nodes.filter((node) => node.provision_state === 'available').length === hosts) return;
    const resting = nodes.filter((node) => node.target_provision_state === null);
    await atOnce(resting, async ({ uuid, provision_state: state }) => {
      const isNew = state === 'manageable' && !inspected.has(uuid);
      const verb = isNew ? 'inspect' : nextVerb[state === 'manageable' ? 'inspected' : state];
      if (verb === undefined) return;
      if (isNew) inspected.add(uuid);
      await api.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: verb });
    });
    await sleep(lookEveryMs);
  }
  const states = (await api.nodes()).map((node) => node.provision_state);
  throw new Error(`Ironic's hosts are not available in time: ${[...new Set(states)].join(', ')}`);
}

async function atOnce<T>(all: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < all.length; at = next++) await work(all[at] as T);
  };
  await Promise.all(Array.from({ length: callsAtOnce }, worker));
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  const insist = setTimeout(() => server.kill('SIGKILL'), 10_000);
  await ended;
  clearTimeout(insist);
}
