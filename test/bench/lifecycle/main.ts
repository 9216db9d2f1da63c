/**
 * Hosts per second from create to available: `npm run bench -- lifecycle [--hosts N]`. The control
 * plane and the agent are processes of their own, over mTLS; the machines are instant, so that
 * what is left is ours: decisions, writes, fsyncs, signatures, certificates.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import {
  CredentialService,
  connect,
  createClient,
  HostService,
  HostState,
  RackService,
  WatchHostsResponse_Kind,
} from '@rackwright/api';
import { freePorts } from '../../free-ports.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');
const [operatorsPort = 0, agentsPort = 0] = await freePorts(2);
/** Creations under way at once. */
const creationsAtOnce = 64;

const { values } = parseArgs({ options: { hosts: { type: 'string', default: '1000' } } });
const hosts = Number(values.hosts);
if (!Number.isSafeInteger(hosts) || hosts < 1) {
  console.error('--hosts takes a whole number from 1');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'rackwright-bench-'));
const children: ChildProcess[] = [];
try {
  await bench();
} finally {
  await Promise.all(children.map(stop));
  rmSync(folder, { recursive: true, force: true });
}

async function bench(): Promise<void> {
  writeConfigurations();
  const controlPlane = start([join(root, 'controlplane/src/main.ts'), '--config', file('cp.json')]);
  const clients = await connectClients();
  await clients.racks.createRack({ rackId: 'r1' });
  const { token } = await clients.racks.createJoinToken({ rack: 'racks/r1' });
  const join_ = ['join', `127.0.0.1:${operatorsPort}`, token, '--config', file('agent.json')];
  await run(process.execPath, [join(root, 'agent/src/main.ts'), ...join_]);
  const credential = { username: 'admin', password: 'secret' };
  await clients.credentials.createCredential({ credentialId: 'c1', credential });
  const agentProcess = start([join(import.meta.dirname, './agent.ts'), file('agent')]);
  await until(async () => {
    const rack = await clients.racks.getRack({ name: 'racks/r1' });
    return rack.status?.agentConnected === true;
  });
  const before = usage(controlPlane, agentProcess);
  const startMs = performance.now();
  const available = countAvailable(clients.hosts);
  await createAll(clients.hosts);
  await available;
  report((performance.now() - startMs) / 1000, before, usage(controlPlane, agentProcess));
  clients.close();
}

function file(name: string): string {
  return join(folder, name);
}

function writeConfigurations(): void {
  const address = '127.0.0.1';
  const controlPlane = {
    dataFolder: file('cp'),
    log: { level: 'warn' },
    operators: { address, port: operatorsPort },
    agents: { address, port: agentsPort, advertise: `127.0.0.1:${agentsPort}` },
    names: ['127.0.0.1', 'localhost'],
  };
  writeFileSync(file('cp.json'), JSON.stringify(controlPlane));
  const agent = { stateFolder: file('agent'), serverAddress: address };
  writeFileSync(file('agent.json'), JSON.stringify(agent));
}

function start(args: string[]): ChildProcess {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  children.push(child);
  return child;
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
  const headers = { authorization: `Bearer ${token}` };
  const clients = {
    hosts: createClient(HostService, channel, { headers }),
    racks: createClient(RackService, channel, { headers }),
    credentials: createClient(CredentialService, channel, { headers }),
    close: () => channel.close(),
  };
  await until(async () => (await clients.racks.listRacks({})).racks.length === 0);
  return clients;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 400; attempt++) {
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
  for await (const event of client.watchHosts({})) {
    if (event.kind !== WatchHostsResponse_Kind.UPDATED) continue;
    const { name = '', status } = event.host ?? {};
    if (status?.state === HostState.AVAILABLE) done.add(name);
    if (done.size === hosts) return;
  }
}

interface Usage {
  readonly cpuMs: readonly number[];
  readonly writes: readonly number[];
  readonly writtenBytes: readonly number[];
}

/** CPU and writes of the two processes, as the kernel counts them. */
function usage(...processes: ChildProcess[]): Usage {
  const read = (child: ChildProcess, name: string) =>
    readFileSync(`/proc/${child.pid}/${name}`, 'utf8');
  const io = (child: ChildProcess, key: string) =>
    Number(new RegExp(`^${key}: (\\d+)`, 'm').exec(read(child, 'io'))?.[1]);
  return {
    cpuMs: processes.map((child) => {
      const fields = read(child, 'stat')
        .replace(/^.*\) /, '')
        .split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 10;
    }),
    writes: processes.map((child) => io(child, 'syscw')),
    writtenBytes: processes.map((child) => io(child, 'write_bytes')),
  };
}

function report(seconds: number, before: Usage, after: Usage): void {
  const per = (key: keyof Usage, index: number) =>
    ((after[key][index] ?? 0) - (before[key][index] ?? 0)) / hosts;
  console.log(`${hosts} hosts from create to available in ${seconds.toFixed(2)} s`);
  console.log(`${(hosts / seconds).toFixed(1)} hosts/s (floor 60, aim 330)`);
  for (const [index, name] of ['control plane', 'agent'].entries()) {
    console.log(
      `${name}: ${per('cpuMs', index).toFixed(2)} ms CPU, ` +
        `${per('writes', index).toFixed(1)} write calls, ` +
        `${(per('writtenBytes', index) / 1024).toFixed(1)} KiB written per host`,
    );
  }
}
