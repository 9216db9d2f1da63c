/** The examples as a stranger runs them: in a clean folder, with code generated from proto/. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import {
  addSurroundings,
  type Fixture,
  manageableHost,
  putHost,
  startFixture,
} from '@rackwright/controlplane/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { peerMissing } from '../../skipped-reporter.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');
const clients = join(root, 'packages/clients');
const python = '/usr/bin/python3';
const plugin = '/usr/bin/grpc_python_plugin';
const goPeers = [
  ...['/usr/bin/go', '/usr/bin/protoc', '/usr/bin/protoc-gen-go', '/usr/bin/protoc-gen-go-grpc'],
  ...['/usr/share/gocode/src/google.golang.org/grpc', '/usr/include/google/protobuf'],
  '/usr/share/gocode/src/github.com/golang/protobuf/internal',
];
/** One of each package that the README names, and that nothing else here needs. */
const javaPeers = [
  ...['/usr/bin/javac', '/usr/bin/protoc', '/usr/bin/grpc_java_plugin'],
  ...['grpc-netty', 'protobuf', 'netty-handler', 'netty-tcnative', 'guava', 'gson'].map(jarOf),
  ...['perfmark-api', 'geronimo-annotation-1.3-spec'].map(jarOf),
];
const timeout = 600_000;

let fixture: Fixture;
let folder: string;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  for (const n of [1, 2]) await putHost(fixture.store, manageableHost(n));
  folder = mkdtempSync(join(tmpdir(), 'rackwright-client-'));
  const { caCertificatePem } = fixture.controlPlane.identity;
  writeFileSync(join(folder, 'ca.pem'), caCertificatePem);
  writeFileSync(join(folder, 'token'), fixture.token);
});

afterEach(async () => {
  rmSync(folder, { recursive: true });
  await fixture.stop();
});

const seen = (code: string) => ({
  ...{ listed: ['hosts/h1', 'hosts/h2'], watched: ['hosts/h1', 'hosts/h2'], cleaning: true },
  refused: {
    ...{ code, reason: 'FIELD_VIOLATIONS' },
    fields: expect.arrayContaining(['host_id', 'host.spec.rack']),
  },
});

test('the TypeScript example calls by Connect', async () => {
  cpSync(join(clients, 'typescript'), folder, { recursive: true });
  mkdirSync(join(folder, 'node_modules'));
  for (const scope of ['@bufbuild', '@connectrpc']) {
    symlinkSync(join(root, 'node_modules', scope), join(folder, 'node_modules', scope));
  }
  const bin = join(root, 'node_modules/.bin');
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const inside = { cwd: folder, env, timeout };
  const generate = ['generate', join(root, 'proto'), '--template', 'buf.gen.yaml'];
  await run(join(bin, 'buf'), generate, inside);
  const url = `https://127.0.0.1:${fixture.controlPlane.operatorsPort}`;
  const program = join(folder, 'example.mts');
  const { stdout } = await run(process.execPath, [program, url, 'ca.pem', 'token'], inside);
  expect(JSON.parse(stdout)).toEqual(seen('InvalidArgument'));
});

test('the Python example calls by gRPC', async (self) => {
  const missing = missingPeer();
  if (missing !== undefined) self.skip(`${peerMissing}${missing}: run npm run peers`);
  const proto = join(root, 'proto');
  const protosIn = (below: string) =>
    readdirSync(join(proto, below))
      .filter((name) => name.endsWith('.proto'))
      .map((name) => join(proto, below, name));
  await run(
    'protoc',
    [
      `--proto_path=${proto}`,
      ...[`--plugin=protoc-gen-grpc=${plugin}`, `--python_out=${folder}`, `--grpc_out=${folder}`],
      ...[...protosIn('rackwright/v1'), ...protosIn('third_party/google/rpc')],
    ],
    { timeout },
  );
  const program = join(folder, 'example.py');
  cpSync(join(clients, 'python/example.py'), program);
  const target = `127.0.0.1:${fixture.controlPlane.operatorsPort}`;
  const env = { PATH: '/usr/bin:/bin', PYTHONDONTWRITEBYTECODE: '1' };
  const inside = { cwd: folder, env, timeout };
  const { stdout } = await run(python, [program, target, 'ca.pem', 'token'], inside);
  expect(JSON.parse(stdout)).toEqual(seen('INVALID_ARGUMENT'));
});

test.for([
  ['Go', 'go/example.go', goPeers, 'InvalidArgument'],
  ['Java', 'java/Example.java', javaPeers, 'INVALID_ARGUMENT'],
] as const)(
  'the %s example calls by gRPC, as the README says',
  { timeout },
  async ([language, file, peers, code], self) => {
    const missing = peers.find((path) => !existsSync(path));
    if (missing !== undefined) self.skip(`${peerMissing}${missing}: run npm run peers`);
    symlinkSync(join(root, 'proto'), join(folder, 'proto'));
    cpSync(join(clients, file), join(folder, basename(file)));
    const target = `127.0.0.1:${fixture.controlPlane.operatorsPort}`;
    const script = scriptOf(language);
    const told = script.replace('CONTROL-PLANE:7440 ca.pem admin.token', `${target} ca.pem token`);
    expect(told).not.toBe(script);
    // Modules would be looked for elsewhere: here is all that it takes.
    const env = {
      ...{ PATH: '/usr/bin:/bin', HOME: folder, GOPROXY: 'off' },
      // Go knows by their contents what it has compiled before, once paths do not matter: its
      // library and gRPC take half a minute of a processor. It deletes what nobody uses any more.
      ...{ GOCACHE: join(root, '.cache/go'), GOFLAGS: '-trimpath' },
      // Most of what a short compilation takes goes for making the compiler itself quick.
      JDK_JAVAC_OPTIONS: '-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC',
    };
    const { stdout } = await run('sh', ['-c', told], { cwd: folder, env, timeout });
    expect(JSON.parse(stdout)).toEqual(seen(code));
  },
);

/** The commands of the README's section on a language, but for what installs packages. */
function scriptOf(language: string): string {
  const readMe = readFileSync(join(clients, 'README.md'), 'utf8');
  const [, section = ''] = readMe.split(`\n## ${language}\n`);
  const [text = ''] = section.split('\n## ');
  const lines = text.split('\n').filter((line) => /^ {4}/.test(line));
  return lines.join('\n').replace(/^ *apt install (.*\\\n)*.*$/m, 'set -e');
}

function jarOf(name: string): string {
  return `/usr/share/java/${name}.jar`;
}

test('the curl example calls with JSON', async (self) => {
  if (spawnSync('curl', ['--version']).status !== 0) {
    self.skip(`${peerMissing}curl: run npm run peers`);
  }
  const url = `https://127.0.0.1:${fixture.controlPlane.operatorsPort}`;
  const call = async (method: string, body: string): Promise<unknown> => {
    const { stdout } = await run(
      'curl',
      [
        ...['--silent', '--show-error', '--cacert', 'ca.pem', '--json', body],
        ...['--header', `Authorization: Bearer ${fixture.token}`],
        `${url}/rackwright.v1.HostService/${method}`,
      ],
      { cwd: folder, timeout },
    );
    return JSON.parse(stdout);
  };
  const { hosts } = (await call('ListHosts', '{}')) as { hosts: { name: string }[] };
  expect(hosts.map(({ name }) => name)).toEqual(['hosts/h1', 'hosts/h2']);
  const watched = framesIn(await watchByReadMe(url));
  expect(watched.map(({ host }) => host?.name)).toEqual(['hosts/h1', 'hosts/h2', undefined]);
  const cleaned = await call('CleanHost', '{"name": "hosts/h1", "reason": "an example"}');
  expect(cleaned).toMatchObject({ name: 'hosts/h1', status: { run: expect.anything() } });
  expect(await call('CreateHost', '{"hostId": "H", "host": {"spec": {}}}')).toMatchObject({
    code: 'invalid_argument',
    details: expect.arrayContaining([
      expect.objectContaining({ type: 'google.rpc.BadRequest', debug: expect.anything() }),
    ]),
  });
});

/** What the README's command to watch is sent, up to the mark that all that is there was told. */
async function watchByReadMe(url: string): Promise<Buffer> {
  const script = scriptOf('curl').slice(scriptOf('curl').indexOf('printf'));
  const told = script.replace('https://CONTROL-PLANE:7440', url);
  expect(told).not.toBe(script);
  const env = { PATH: process.env['PATH'], TOKEN: fixture.token };
  const child = spawn('sh', ['-c', told], { cwd: folder, env, detached: true });
  let sent = Buffer.alloc(0);
  for await (const part of child.stdout) {
    sent = Buffer.concat([sent, part as Buffer]);
    if (framesIn(sent).some(({ kind }) => kind === 'KIND_SYNCED')) break;
  }
  // The shell waits for its pipe.
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
  return sent;
}

interface Watched {
  readonly kind?: string;
  readonly host?: { readonly name: string };
}

/** The messages of whole frames: a byte of flags, four of length, JSON (Connect protocol). */
function framesIn(bytes: Buffer): Watched[] {
  const frames: Watched[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) break;
    frames.push(JSON.parse(bytes.toString('utf8', at + 5, end)) as Watched);
    at = end;
  }
  return frames;
}

/** What Debian would have to install, or undefined. */
function missingPeer(): string | undefined {
  const starts = (program: string, ...args: string[]) =>
    spawnSync(program, args, { stdio: 'ignore', timeout });
  if (starts('protoc', '--version').status !== 0) return 'protobuf-compiler';
  // The plugin waits for a request on standard input, and refuses an empty one.
  if (starts(plugin).error !== undefined) return 'protobuf-compiler-grpc';
  if (starts(python, '-c', 'import google.protobuf').status !== 0) return 'python3-protobuf';
  if (starts(python, '-c', 'import grpc').status !== 0) return 'python3-grpcio';
  return undefined;
}
