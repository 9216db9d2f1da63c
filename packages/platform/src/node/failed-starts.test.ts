import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeFailedStarts, pauseMsMax, waitUnlessSignalled } from './failed-starts.ts';

let folder: string;
let waited: number[];
const wait = async (ms: number) => {
  waited.push(ms);
  return true;
};
/** Each life of the program has one of its own. */
const life = (environment: Record<string, string> = { RUNTIME_DIRECTORY: folder }) =>
  nodeFailedStarts(environment, wait);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'failed-starts-'));
  waited = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the pause of a program that could not start', () => {
  test('is none at first, then grows with each life, up to its limit', async () => {
    // However such a life has ended: it did not come so far as to forget.
    for (let start = 1; start <= 9; start += 1) expect(await life().begin()).toBe(true);
    expect(waited).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, pauseMsMax, pauseMsMax]);
  });

  test('begins again once a start has succeeded', async () => {
    for (let start = 1; start <= 4; start += 1) await life().begin();
    await life().forget();
    for (let start = 1; start <= 2; start += 1) await life().begin();
    expect(waited).toEqual([2_000, 4_000]);
    await life().begin();
    expect(waited).toEqual([2_000, 4_000, 2_000]);
  });

  test('ends with the count when somebody wants an end', async () => {
    for (let start = 1; start <= 2; start += 1) await life().begin();
    const asked = nodeFailedStarts({ RUNTIME_DIRECTORY: folder }, async () => false);
    expect(await asked.begin()).toBe(false);
    expect(await life().begin()).toBe(true);
    expect(waited).toEqual([]);
  });

  test('is none without a folder of the unit, or when that cannot be written', async () => {
    for (let start = 1; start <= 4; start += 1) {
      expect(await life({}).begin()).toBe(true);
      expect(await life({ RUNTIME_DIRECTORY: join(folder, 'gone') }).begin()).toBe(true);
    }
    expect(waited).toEqual([]);
    await expect(life({}).forget()).resolves.toBeUndefined();
  });
});

describe('the wait', () => {
  test('passes, and leaves no listener behind', async () => {
    const before = process.listenerCount('SIGTERM');
    expect(await waitUnlessSignalled(1)).toBe(true);
    expect(process.listenerCount('SIGTERM')).toBe(before);
  });

  test('the wait of a process is over with SIGTERM, which ends its count', async () => {
    const module = JSON.stringify(join(import.meta.dirname, 'failed-starts.ts'));
    const lines = [
      `import { nodeFailedStarts } from ${module};`,
      'const starts = nodeFailedStarts(process.env);',
      'process.on("newListener", (name) => {',
      '  if (name === "SIGTERM") setImmediate(() => console.log("listens"));',
      '});',
      'for (;;) if (!(await starts.begin())) process.exit(7);',
    ];
    const child = spawn(process.execPath, ['--input-type=module', '-e', lines.join('\n')], {
      env: { ...process.env, RUNTIME_DIRECTORY: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await ended).toEqual([7, null]);
    expect(existsSync(join(folder, 'failed-starts'))).toBe(false);
  });
});
