/**
 * No statement reads a whole table: SQLite names the index of each statement that was ever
 * prepared.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { expect, test, vi } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { asWriteId } from '../contract.ts';
import { openSqliteStore } from './store.ts';

/** Tables of a few rows, and what a statement has read by an index before, a change at a time. */
const small = ['identity', 'sqlite_master', 'dictionaries', 'indexed', 'walk'];

/** Every statement that the driver prepares; those of the fixed tables all are, at opening. */
async function statementsOfAll(path: string): Promise<Set<string>> {
  const prepared = vi.spyOn(DatabaseSync.prototype, 'prepare');
  const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
  await store.put('hosts.a', bytes('1'), 'absent');
  await store.put('hosts.b', bytes('1'), 'absent', asWriteId('w1'));
  await store.delete('hosts.a', 1);
  await store.log.append('e1', bytes('x'));
  for (const prefix of ['', 'hosts']) {
    await store.list(prefix);
    await store.list(prefix, { after: 'hosts.a', limit: 1 });
    for await (const _ of store.watch(0, prefix)) break;
  }
  await store.historyBackwards('hosts.a', 1);
  await store.history('hosts.a');
  await store.close();
  const statements = new Set(prepared.mock.calls.map(([sql]) => sql));
  prepared.mockRestore();
  return new Set([...statements].filter((sql) => !sql.startsWith('PRAGMA')));
}

function planOf(database: DatabaseSync, sql: string): string[] {
  const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return rows.map((row) => String(row['detail']));
}

/** Steps of a plan that read a whole table or index, or sort rows. */
function wholeReads(plan: readonly string[]): string[] {
  return plan.filter(
    (step) =>
      (step.startsWith('SCAN') && !small.includes(step.split(' ')[1] ?? '')) ||
      step.includes('TEMP B-TREE') ||
      (step.startsWith('SEARCH') && !/USING|\(/u.test(step) && !step.startsWith('SEARCH changes')),
  );
}

test('every statement of the driver uses an index', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-plans-'));
  try {
    const path = join(folder, 'store.db');
    const statements = await statementsOfAll(path);
    expect(statements.size).toBeGreaterThan(14);
    const database = new DatabaseSync(path, { readOnly: true });
    const found: string[] = [];
    for (const sql of statements) {
      const plan = planOf(database, sql);
      found.push(...wholeReads(plan).map((step) => `${step}: ${sql}`));
    }
    expect(found).toEqual([]);
    const planted = `SELECT key FROM newest WHERE :p = '' OR key = :p`;
    expect(wholeReads(planOf(database, planted))).not.toEqual([]);
    const sorted = 'SELECT key FROM changes WHERE revision > 1 ORDER BY time_ms';
    expect(wholeReads(planOf(database, sorted))).not.toEqual([]);
    database.close();
  } finally {
    await rm(folder, { recursive: true });
  }
});
