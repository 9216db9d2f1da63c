/** S4 with a real process: SIGKILL in the middle of writing, again and again on one file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { openSqliteStore } from './store.ts';

const ROUNDS = 12;
/** Writes in flight at once, so that kills also fall between writes of one transaction. */
const WRITERS = 8;

/** Opens the store and writes without end; a line "key revision" follows each acknowledgement. */
const WRITER = `
  const { writeSync } = await import('node:fs');
  const { openSqliteStore } = await import(${JSON.stringify(import.meta.resolve('./store.ts'))});
  const { nodeClock, nodeRandom } = await import('@rackwright/platform/node');
  const store = await openSqliteStore({
    path: process.argv[1],
    random: nodeRandom(),
    clock: nodeClock(),
  });
  async function write(key) {
    const before = await store.get(key);
    let expected = before.revision ?? 'absent';
    for (;;) {
      const result = await store.put(key, Buffer.from(String(expected)), expected);
      if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
      expected = result.revision;
      writeSync(1, key + ' ' + expected + '\\n');
    }
  }
  await Promise.all(Array.from({ length: ${WRITERS} }, (_, at) => write('hosts.h' + at)));
`;

function startWriter(path: string): ChildProcess {
  return spawn(process.execPath, ['--input-type=module', '-e', WRITER, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Lets the writer make `count` more writes, kills it, and answers the last ones acknowledged. */
async function killAfter(writer: ChildProcess, count: number): Promise<Map<string, number>> {
  const acknowledged = new Map<string, number>();
  let seen = 0;
  const exited = once(writer, 'exit');
  for await (const line of createInterface({ input: writer.stdout as NodeJS.ReadableStream })) {
    const [key = '', revision = ''] = line.split(' ');
    acknowledged.set(key, Number(revision));
    seen += 1;
    if (seen === count) writer.kill('SIGKILL');
  }
  expect(await exited).toEqual([null, 'SIGKILL']);
  return acknowledged;
}

test('the store has every acknowledged write after kill -9 of the writing process', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-store-'));
  const path = join(folder, 'store.db');
  let highest = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledged = await killAfter(startWriter(path), 40 + 97 * round);
    const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
    for (const [key, revision] of acknowledged) {
      const revisions = (await store.history(key)).map((change) => change.revision);
      expect(revisions.at(-1), key).toBeGreaterThanOrEqual(revision);
      expect(revisions, key).toContain(revision);
    }
    const latest = await store.latestRevision();
    expect(latest).toBeGreaterThan(highest);
    highest = latest;
    await store.close();
  }
  const database = new DatabaseSync(path);
  expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  database.close();
  await rm(folder, { recursive: true });
});
