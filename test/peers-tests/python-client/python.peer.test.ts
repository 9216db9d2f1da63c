/** Peers that know our API only from proto/ or from reflection: Debian's Python, and buf. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { peerMissing } from '../../skipped-reporter.ts';
import { type ControlPlaneProcess, startControlPlaneProcess } from './control-plane-process.ts';

const run = promisify(execFile);
const here = new URL('.', import.meta.url).pathname;
const proto = join(here, '../../../proto');
const buf = join(here, '../../../node_modules/.bin/buf');
/** Debian's own, where its packages are; a newer one of somebody's choice would not see them. */
const python = '/usr/bin/python3';
const plugin = '/usr/bin/grpc_python_plugin';
const callTimeoutMs = 300_000;

/** What Debian would have to install, or undefined. */
function missingPeer(): string | undefined {
  const starts = (program: string, ...args: string[]) =>
    spawnSync(program, args, { stdio: 'ignore', timeout: callTimeoutMs });
  if (starts('protoc', '--version').status !== 0) return 'protobuf-compiler';
  // The plugin waits for a request on standard input, and refuses an empty one.
  if (starts(plugin).error !== undefined) return 'protobuf-compiler-grpc';
  if (starts(python, '-c', 'import google.protobuf').status !== 0) return 'python3-protobuf';
  if (starts(python, '-c', 'import grpc').status !== 0) return 'python3-grpcio';
  return undefined;
}

let controlPlane: ControlPlaneProcess;

beforeAll(async () => {
  controlPlane = await startControlPlaneProcess();
});

afterAll(() => controlPlane.stop());

describe('a Python client that was generated from proto/', () => {
  test('creates, lists and watches hosts, and reads unset fields as unset', async (self) => {
    const missing = missingPeer();
    if (missing !== undefined) self.skip(`${peerMissing}${missing}: run npm run peers`);
    const folder = await mkdtemp(join(tmpdir(), 'rackwright-python-'));
    try {
      await generate(folder);
      const { operators, caFile, tokenFile } = controlPlane;
      const { stdout } = await run(
        python,
        [join(here, 'client.py'), operators, caFile, tokenFile],
        {
          timeout: callTimeoutMs,
          env: { PATH: '/usr/bin:/bin', PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
        },
      );
      const unset = { retired: false, port: false, powered_on: false, agent_connected: true };
      expect(JSON.parse(stdout)).toEqual({
        listed: ['hosts/h1', 'hosts/h2'],
        presence: { 'hosts/h1': unset, 'hosts/h2': { ...unset, retired: true } },
        watched: ['hosts/h1', 'hosts/h2', 'synced', 'hosts/h3'],
        refused: { code: 'INVALID_ARGUMENT', details: true },
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  async function generate(folder: string): Promise<void> {
    const files = (await readdir(join(proto, 'rackwright/v1'))).filter((name) =>
      name.endsWith('.proto'),
    );
    const args = [
      `--proto_path=${proto}`,
      `--plugin=protoc-gen-grpc_python=${plugin}`,
      `--python_out=${folder}`,
      `--grpc_python_out=${folder}`,
      ...files.map((name) => `rackwright/v1/${name}`),
    ];
    await run('protoc', args, { timeout: callTimeoutMs });
  }
});

// It offers HTTP/1.1 beside HTTP/2 unless it is told that HTTP/2 is there, and then gets HTTP/1.1.
describe('buf curl', () => {
  test('lists every service and method through reflection, and calls one', async () => {
    const { operators, caFile, tokenFile } = controlPlane;
    const token = (await readFile(tokenFile, 'utf8')).trim();
    const curl = async (...args: string[]) => {
      const flags = ['--protocol', 'grpc', '--http2-prior-knowledge', '--cacert', caFile];
      const authorization = ['-H', `authorization: Bearer ${token}`, '--reflect-header', '*'];
      const { stdout } = await run(buf, ['curl', ...flags, ...authorization, ...args], {
        timeout: callTimeoutMs,
      });
      return stdout;
    };
    const methods = (await curl('--list-methods', `https://${operators}`)).trim().split('\n');
    expect(methods).toContain('rackwright.v1.HostService/WatchHosts');
    expect(methods).toContain('rackwright.v1.RackService/CreateJoinToken');
    expect(methods).toContain('rackwright.agent.v1.EnrolmentService/IssueCertificate');
    expect(methods).toContain('grpc.health.v1.Health/Check');
    const url = `https://${operators}/rackwright.v1.RackService/ListRacks`;
    expect(JSON.parse(await curl('-d', '{}', url))).toBeTypeOf('object');
  });

  test('a call without the token is refused', async () => {
    const { operators, caFile } = controlPlane;
    const args = ['curl', '--protocol', 'grpc', '--http2-prior-knowledge', '--cacert', caFile];
    const refused = run(buf, [...args, '--list-methods', `https://${operators}`], {
      timeout: callTimeoutMs,
    });
    await expect(refused).rejects.toThrow('not authenticated');
  });
});
