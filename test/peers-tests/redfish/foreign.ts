/**
 * Redfish services that others wrote, started from archives that stand beside the project
 * (`../shared/foreign`, whose README says how each starts). They are no part of it: where they are
 * missing, their tests are skipped with that reason, and in CI they fail.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { peerMissing } from '../../skipped-reporter.ts';
import { peer, runPeer } from '../peer.ts';

const user = 'admin';
const password = 'word-that-hides';
/** htpasswd's form of that password: bcrypt, made anew for each start. */
const hashScript =
  'import bcrypt,sys;print(bcrypt.hashpw(sys.argv[1].encode(),bcrypt.gensalt(4)).decode())';
const machine = '4f2d8a10-0c3e-4b7a-9f11-2a6d5c0e7b31';
const startTimeoutMs = 60_000;
const stopTimeoutMs = 5_000;

const folder =
  process.env['RACKWRIGHT_FOREIGN'] ?? join(import.meta.dirname, '../../../../shared/foreign');

export type ForeignName = 'sushy-tools' | 'redfish-mockup-server';

export interface ForeignService {
  readonly url: URL;
  close(): Promise<void>;
}

/** Why it cannot be started here; undefined: it can. */
export function missingForeign(name: ForeignName): string | undefined {
  if (archiveOf(name) === undefined) return `${peerMissing}no ${name} in ../shared/foreign`;
  const missing = ['python3', 'openssl', 'tar'].find((one) => peer(one).kind === 'missing');
  return missing === undefined ? undefined : `${peerMissing}${missing}: run npm run peers`;
}

function archiveOf(name: ForeignName): string | undefined {
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const found = files.find((file) => file.startsWith(`${name}-`) && file.endsWith('.tar.gz'));
  return found === undefined ? undefined : join(folder, found);
}

/** Unpacks and starts it on loopback; rejects with its own words when it does not come up. */
export async function startForeign(name: ForeignName): Promise<ForeignService> {
  const home = await mkdtemp(join(tmpdir(), `rackwright-${name}-`));
  await run('tar', ['-xzf', archiveOf(name) ?? '', '-C', home]);
  const port = await freePort();
  await run(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-days', '2', '-subj', '/CN=foreign', '-keyout', 'key.pem', '-out', 'cert.pem'],
    ],
    home,
  );
  const start = await starts[name](home, port);
  const child = spawn('/usr/bin/python3', start.args, {
    cwd: join(home, name),
    env: { PATH: process.env['PATH'] ?? '', ...start.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part: Buffer) => {
      output.text = `${output.text}${part.toString('latin1')}`.slice(-2_000);
    });
  }
  const close = async (): Promise<void> => {
    await stop(child);
    await rm(home, { recursive: true });
  };
  const url = new URL(`https://127.0.0.1:${port}`);
  [url.username, url.password] = [user, password];
  try {
    await answering(url, child, output);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, close };
}

interface Start {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const starts: Readonly<Record<ForeignName, (home: string, port: number) => Promise<Start>>> = {
  'sushy-tools': async (home, port) => {
    const { output: hash } = await runPeer('/usr/bin/python3', ['-c', hashScript, password]);
    await writeFile(join(home, 'users'), `${user}:${hash.trim()}\n`);
    const nics = `[{'mac': '52:54:00:77:00:01', 'ip': '192.0.2.9'}]`;
    const system = `{'uuid': '${machine}', 'name': 'one', 'power_state': 'Off',
      'external_notifier': False, 'nics': ${nics}}`;
    await writeFile(
      join(home, 'conf.py'),
      `SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'
SUSHY_EMULATOR_LISTEN_PORT = ${port}
SUSHY_EMULATOR_FAKE_DRIVER = True
SUSHY_EMULATOR_STATE_DIR = '${home}/state'
SUSHY_EMULATOR_SSL_CERT = '${home}/cert.pem'
SUSHY_EMULATOR_SSL_KEY = '${home}/key.pem'
SUSHY_EMULATOR_AUTH_FILE = '${home}/users'
SUSHY_EMULATOR_FAKE_SYSTEMS = [${system}]
`,
    );
    await mkdir(join(home, 'state'));
    const args = ['-m', 'sushy_tools.emulator.main', '--config', `${home}/conf.py`, '--fake'];
    return { args, env: { PBR_VERSION: '2.0.0', PYTHONPATH: '.' } };
  },
  'redfish-mockup-server': async (home, port) => {
    // It imports what sends events; there are none here.
    await mkdir(join(home, 'stub'));
    const stub = 'def map(*a, **k): pass\ndef post(*a, **k): pass\n';
    await writeFile(join(home, 'stub', 'grequests.py'), stub);
    const tls = ['-s', '--cert', `${home}/cert.pem`, '--key', `${home}/key.pem`];
    const args = ['redfishMockupServer.py', '-H', '127.0.0.1', '-p', `${port}`, ...tls];
    return {
      args: [...args, '-S', '-D', 'public-rackmount1'],
      env: { PYTHONPATH: `${home}/stub`, PYTHONUNBUFFERED: '1' },
    };
  },
};

async function run(program: string, args: readonly string[], cwd = '/'): Promise<void> {
  const found = peer(program);
  if (found.kind === 'missing') throw new Error(found.reason);
  const { code, output } = await runPeer('/usr/bin/env', ['-C', cwd, found.path, ...args]);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${output}`);
}

/** Nobody else here listens on it; another process could take it in the moment between. */
async function freePort(): Promise<number> {
  const server = createServer();
  const port = await new Promise<number>((resolve, reject) => {
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' ? (address?.port ?? 0) : 0);
    });
  });
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answering(url: URL, child: ChildProcess, output: { text: string }): Promise<void> {
  const curl = peer('curl');
  if (curl.kind === 'missing') throw new Error(curl.reason);
  const root = `https://127.0.0.1:${url.port}/redfish/v1/`;
  const endMs = Date.now() + startTimeoutMs;
  while (Date.now() < endMs && child.exitCode === null && child.signalCode === null) {
    const { code } = await runPeer(curl.path, ['-sk', '-o', '/dev/null', root]);
    if (code === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the service does not answer at ${root}: ${output.text}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await ended;
  clearTimeout(timer);
}
