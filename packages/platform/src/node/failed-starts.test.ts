import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeFailedStarts, pauseMaxMs } from './failed-starts.ts';

let folder: string;
let waited: number[];
const wait = (ms: number) => void waited.push(ms);
/** Each life of the program has one of its own. */
const life = (environment: Record<string, string> = { RUNTIME_DIRECTORY: folder }) =>
  nodeFailedStarts(environment, wait);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'failed-starts-'));
  waited = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the pause of a program that cannot start', () => {
  test('is none at first, then grows with each life, up to its limit', async () => {
    for (let failure = 1; failure <= 8; failure += 1) await life().pause();
    expect(waited).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, pauseMaxMs, pauseMaxMs]);
  });

  test('begins anew once a start has succeeded', async () => {
    for (let failure = 1; failure <= 3; failure += 1) await life().pause();
    await life().forget();
    await life().pause();
    expect(waited).toEqual([2_000, 4_000]);
    await life().pause();
    expect(waited).toEqual([2_000, 4_000, 2_000]);
  });

  test('lets nothing else go on in the program', async () => {
    await life().pause();
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 10);
    const begun = performance.now();
    await nodeFailedStarts({ RUNTIME_DIRECTORY: folder }).pause();
    clearInterval(timer);
    expect(performance.now() - begun).toBeGreaterThan(1_900);
    // Before it and behind it, but for the two seconds themselves.
    expect(ticks).toBeLessThan(50);
  });

  test('is none without a folder of the unit, or when that cannot be written', async () => {
    for (let failure = 1; failure <= 3; failure += 1) {
      await life({}).pause();
      await life({ RUNTIME_DIRECTORY: join(folder, 'gone') }).pause();
    }
    expect(waited).toEqual([]);
    await expect(life({}).forget()).resolves.toBeUndefined();
  });
});
