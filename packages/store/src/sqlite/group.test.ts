/** Writes that come while others wait share their commit, and none waits for long. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { expect, test, vi } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { openSqliteStore } from './store.ts';

/** Two writes in each of several passes of the event loop; returns the number of commits. */
async function commitsOf(turns: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-group-'));
  const path = join(folder, 'store.db');
  const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec');
  try {
    const writes: Promise<unknown>[] = [];
    for (let at = 0; at < turns; at += 1) {
      for (const key of [`hosts.h${at}`, `facts.h${at}`]) {
        writes.push(store.put(key, bytes('1'), 'absent'));
      }
      await turn();
    }
    await Promise.all(writes);
    return exec.mock.calls.filter(([sql]) => sql === 'COMMIT').length;
  } finally {
    exec.mockRestore();
    await store.close();
    await rm(folder, { recursive: true });
  }
}

test('writes of turns that follow each other share a commit', async () => {
  expect(await commitsOf(3)).toBe(1);
});

test('a commit waits a bounded number of turns while more and more comes', async () => {
  expect(await commitsOf(40)).toBeGreaterThanOrEqual(8);
});
