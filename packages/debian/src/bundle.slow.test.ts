import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundle } from './bundle.ts';

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
