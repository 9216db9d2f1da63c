import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { moveInto } from './base.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-base-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function made(name: string): string {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, 'facts.json'), name);
  return join(folder, name);
}

test('the first of two builds at once stays, and the second one uses it', async () => {
  const home = join(folder, 'base');
  const [first, second] = [made('first'), made('second')];
  await moveInto(first, home);
  await moveInto(second, home);
  expect(readFileSync(join(home, 'facts.json'), 'utf8')).toBe('first');
});

test('a build that cannot be put in place says why', async () => {
  const nowhere = join(folder, 'missing', 'base');
  await expect(moveInto(made('first'), nowhere)).rejects.toThrow('ENOENT');
});
