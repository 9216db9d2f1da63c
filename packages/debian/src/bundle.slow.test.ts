import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundle } from './bundle.ts';
import { programs } from './contents.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bundle-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a program that speaks HTTP starts without what is behind fetch', async () => {
  const source = `import { createServer, get } from 'node:http';
    const loaded = process.moduleLoadList.filter((name) => name.includes('undici'));
    console.log(typeof createServer, typeof get, loaded.length);`;
  writeFileSync(join(folder, 'main.ts'), source);
  const { code } = await bundle(folder, 'main.ts', '1.0');
  const program = join(folder, 'main.mjs');
  writeFileSync(program, code);
  expect(execFileSync(process.execPath, [program], { encoding: 'utf8' })).toBe(
    'function function 0\n',
  );
});

/** What is read before the first line of it runs. */
async function loadedAtStart(name: 'agent'): Promise<string[]> {
  const { entry, form } = programs[name];
  const root = join(import.meta.dirname, '../../..');
  const { code, chunks } = await bundle(root, entry, '1.0', form);
  const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
  const left = [text(code)];
  const loaded = new Set<string>();
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    loaded.add(part);
    const imported = [...part.matchAll(/^(?:import|\}) .*?"\.\/(part-\w+\.mjs)";$/gm)];
    for (const [, name] of imported) {
      const chunk = chunks.find((one) => one.name === name);
      if (chunk !== undefined && !loaded.has(text(chunk.code))) left.push(text(chunk.code));
    }
  }
  return [...loaded];
}

test('an agent reads no gRPC and makes no certificate before it answers hosts', async () => {
  const loaded = (await loadedAtStart('agent')).join('\n');
  expect(loaded).toContain('// packages/messages/src/gen/rackwright/agent/v1/session_pb.ts');
  expect(loaded).toContain('// agent/src/boot/dhcp-server.ts');
  expect(loaded).not.toContain('// node_modules/@grpc/grpc-js/');
  expect(loaded).not.toContain('// node_modules/@peculiar/x509/');
});
