import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundle } from './bundle.ts';
import { programs } from './contents.ts';

const root = join(import.meta.dirname, '../../..');

let agentsBundle: ReturnType<typeof bundle> | undefined;

/** The agent as it is packaged, bundled once for all tests. */
function agentBundle(): ReturnType<typeof bundle> {
  const { entry, form } = programs.agent;
  agentsBundle ??= bundle(root, entry, '1.0', form);
  return agentsBundle;
}

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bundle-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What a program of this source prints as a bundle. */
async function outputOf(source: string): Promise<string> {
  writeFileSync(join(folder, 'main.ts'), source);
  const { code } = await bundle(folder, 'main.ts', '1.0');
  const program = join(folder, 'main.mjs');
  writeFileSync(program, code);
  return execFileSync(process.execPath, [program], { encoding: 'utf8', cwd: folder });
}

test('a program that speaks HTTP starts without what is behind fetch', async () => {
  const source = `import { createServer, get } from 'node:http';
    const loaded = process.moduleLoadList.filter((name) => name.includes('undici'));
    console.log(typeof createServer, typeof get, loaded.length);`;
  expect(await outputOf(source)).toBe('function function 0\n');
});

test('a program that hashes and reads files starts without Web Crypto and streams', async () => {
  const source = `import { createHash } from 'node:crypto';
    import * as fs from 'node:fs';
    import path, { join } from 'node:path';
    const unused = /webcrypto|internal\\/fs\\/streams/;
    const loaded = process.moduleLoadList.filter((name) => unused.test(name));
    const bytes = fs.readFileSync(join('.', path.basename('main.ts')));
    const { length } = createHash('sha256').update(bytes).digest();
    console.log(length, loaded.join());`;
  expect(await outputOf(source)).toBe('32 \n');
});

test('a program logs without what only pino’s own destinations load', async () => {
  const source = `import { nodeLog } from '${root}/packages/platform/src/node/log.ts';
    const unused = /^NativeModule (worker_threads|assert)$/;
    const loaded = process.moduleLoadList.filter((name) => unused.test(name));
    nodeLog('info', 1).child({ rack: 'r1' }).info({ line: 1 }, 'well');
    console.log(loaded.join());`;
  const [line = '', loaded] = (await outputOf(source)).split('\n');
  expect(JSON.parse(line)).toMatchObject({ level: 'info', rack: 'r1', line: 1, message: 'well' });
  expect(loaded).toBe('');
});

test('an agent reads no gRPC, no drivers and no operations before it answers hosts', async () => {
  const { atStart, all } = (await agentBundle()).sources;
  const grpc = 'node_modules/@grpc/grpc-js/build/src/index.js';
  expect([all.has(grpc), atStart.has(grpc)]).toEqual([true, false]);
  expect([...atStart].filter((source) => source.includes('/@peculiar/x509/'))).toEqual([]);
  for (const later of ['http.ts', 'https-client.ts', 'web-client.ts']) {
    const source = `packages/platform/src/node/${later}`;
    expect([all.has(source), atStart.has(source)], later).toEqual([true, false]);
  }
  // Nothing that works on hosts.
  for (const later of ['packages/bmc/src/redfish/driver.ts', 'agent/src/operations/executor.ts']) {
    expect([all.has(later), atStart.has(later)], later).toEqual([true, false]);
  }
  // Definitions come as JSON, without the schema by which protobuf would decode them.
  expect([...atStart].filter((source) => source.endsWith('/descriptor_pb.js'))).toEqual([]);
  for (const needed of ['agent/src/boot/dhcp-server.ts', 'packages/messages/src/agent.ts']) {
    expect(atStart).toContain(needed);
  }
  // Nothing that only clients of the operators' services need.
  expect(all).not.toContain('packages/rpc/src/client/operators.ts');
});

test('a program has one byte a character, which takes Node half the memory', async () => {
  const { code, chunks } = await agentBundle();
  for (const bytes of [code, ...chunks.map((chunk) => chunk.code)]) {
    expect(bytes.findIndex((byte) => byte > 127)).toBe(-1);
  }
});

test('the programs of a rack contain no definitions of the operators’ services', async () => {
  const bringsPools = async (entry: string): Promise<boolean> => {
    const { code } = await bundle(root, entry, '1.0');
    return new TextDecoder().decode(code).includes('file_rackwright_v1_pool');
  };
  expect(await bringsPools('packages/cli/src/main.ts')).toBe(true);
  expect(await bringsPools('packages/runner/src/main.ts')).toBe(false);
  expect(await bringsPools('agent/src/main.ts')).toBe(false);
});

test('a runner brings definitions of nothing but what it says to its agent', async () => {
  const { code } = await bundle(root, 'packages/runner/src/main.ts', '1.0');
  const brought = [
    ...new TextDecoder().decode(code).matchAll(/\bfile_rackwright_(\w+)=[^;]*?fileDesc\(/g),
  ];
  expect(new Set(brought.map(([, name]) => name))).toEqual(
    new Set([
      ...['agent_v1_operation', 'agent_v1_report', 'runner_v1_runner', 'v1_bmc', 'v1_boot'],
      ...['v1_burn_in', 'v1_deploy', 'v1_erasure_policy', 'v1_failure', 'v1_inventory', 'v1_run'],
    ]),
  );
});
