import { chmod, mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bytes, HandClock, TESTED_PREFIX, testedRetention } from '../conformance/subject.ts';
import { storeConformance } from '../conformance/suite.ts';
import { HISTORY_PER_KEY } from '../contract.ts';
import { sqliteFileProblem } from './check.ts';
import { openSqliteStore } from './store.ts';
import { sqliteUnderTest } from './subject.ts';
import { SWEEP_PAUSE_MS, SWEEP_ROWS_MAX } from './sweep.ts';

storeConformance('the SQLite store', sqliteUnderTest);

let folder = '';
let path = '';
const random = nodeRandom();
const clock = nodeClock();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-store-'));
  path = join(folder, 'store.db');
});

afterEach(() => rm(folder, { recursive: true }));

test('a reopened store has its values, revisions and incarnation', async () => {
  const before = await openSqliteStore({ path, random, clock });
  await before.put('hosts.a', bytes('one'), 'absent');
  await before.close();
  const after = await openSqliteStore({ path, random, clock });
  expect(after.incarnation).toBe(before.incarnation);
  expect(await after.get('hosts.a')).toMatchObject({ kind: 'found', revision: 1 });
  expect(await after.put('hosts.b', bytes('two'), 'absent')).toMatchObject({ revision: 2 });
  await after.close();
});

test('a store opened as restored has a new incarnation, and its revisions go on', async () => {
  const before = await openSqliteStore({ path, random, clock });
  await before.put('hosts.a', bytes('one'), 'absent');
  await before.close();
  const after = await openSqliteStore({ path, random, clock, restored: true });
  expect(after.incarnation).not.toBe(before.incarnation);
  expect(await after.latestRevision()).toBe(1);
  await after.close();
});

test('the store answers writes that were still waiting when it was closed', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const write = store.put('hosts.a', bytes('one'), 'absent');
  await store.close();
  expect(await write).toMatchObject({ kind: 'ok', revision: 1 });
});

test('the store is readable by its owner only', async () => {
  const store = await openSqliteStore({ path, random, clock });
  await store.put('hosts.a', bytes('one'), 'absent');
  for (const file of [path, `${path}-wal`]) expect((await stat(file)).mode & 0o777).toBe(0o600);
  await store.close();
});

test('the store refuses a second opener while the first has it', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const second = openSqliteStore({ path, random, clock });
  await expect(second).rejects.toMatchObject({
    code: 'inUse',
    message: expect.stringMatching(/another process/),
  });
  await store.close();
  await (await openSqliteStore({ path, random, clock })).close();
});

test('the store refuses a folder that is missing, and names it', async () => {
  const missing = openSqliteStore({ path: join(folder, 'missing', 'store.db'), random, clock });
  await expect(missing).rejects.toMatchObject({
    code: 'notWritable',
    message: expect.stringMatching(/missing must exist/),
  });
});

test('the store refuses a folder that it may not write to', async (context) => {
  if (process.getuid?.() === 0) context.skip('root may write everywhere');
  await chmod(folder, 0o500);
  await expect(openSqliteStore({ path, random, clock })).rejects.toMatchObject({
    code: 'notWritable',
  });
  await chmod(folder, 0o700);
});

test('values packed with any earlier dictionary are read', async () => {
  const value = (n: number) =>
    bytes(`${n}: a value that is long enough, and one word many words of a value`);
  const dictionaries = [bytes('many words of a value'), undefined, bytes('is long enough')];
  for (const [at, dictionary] of [...dictionaries, ...dictionaries].entries()) {
    const options = { path, random, clock, ...(dictionary === undefined ? {} : { dictionary }) };
    const store = await openSqliteStore(options);
    await store.put(`hosts.h${at}`, value(at), 'absent');
    await store.close();
  }
  const store = await openSqliteStore({ path, random, clock });
  const { entries } = await store.list('hosts');
  expect(entries.map((entry) => entry.value)).toEqual([0, 1, 2, 3, 4, 5].map(value));
  expect(await store.get('hosts.h0')).toMatchObject({ value: value(0) });
  expect((await store.historyBackwards('hosts.h2', 1)).changes).toMatchObject([
    { value: value(2) },
  ]);
  await store.close();
  const database = new DatabaseSync(path);
  expect(database.prepare('SELECT count(*) AS n FROM dictionaries').get()).toEqual({ n: 2 });
  const packed = database.prepare('SELECT packed FROM changes ORDER BY revision').all();
  expect(packed.map((row) => row['packed'])).toEqual([1, 0, 2, 1, 0, 2]);
  database.close();
});

test('a write changes hardly more than one page, wherever its key lies', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const keyOf = (at: number) => `runs.u${(at * 7_919) % 10_007}`;
  let revision = 0;
  const put = async (at: number, expected: number | 'absent') => {
    const written = await store.put(keyOf(at), bytes('x'), expected);
    if (written.kind === 'ok') revision = written.revision;
    return revision;
  };
  await Promise.all(Array.from({ length: 10_000 }, (_, at) => put(at, 'absent')));
  const framesOf = async () => ((await stat(`${path}-wal`)).size - 32) / (4_096 + 24);
  const before = await framesOf();
  const commits = 100;
  for (let at = 0; at < commits; at += 1) {
    const { revision: known = 0 } = await store.get(keyOf(at * 97));
    await put(at * 97, known);
  }
  // Its change, and now and then the root of the file, or keys that have waited.
  expect(((await framesOf()) - before) / commits).toBeLessThan(1.8);
  await store.close();
});

test('the past of a key is found from any revision, and ends where changes are gone', async () => {
  const store = await openSqliteStore({ path, random, clock });
  let revision = 0;
  for (let at = 0; at < 200; at += 1) {
    const written = await store.put(
      'hosts.a',
      bytes(`${at}`),
      revision === 0 ? 'absent' : revision,
    );
    revision = written.kind === 'ok' ? written.revision : 0;
    await store.put(`hosts.b${at}`, bytes('x'), 'absent');
  }
  // Odd revisions are of the key.
  const past = async (from: number) => (await store.historyBackwards('hosts.a', 2, from)).changes;
  const revisions = async (from: number) => (await past(from)).map((change) => change.revision);
  expect(await revisions(397)).toEqual([397, 395]);
  expect(await revisions(396)).toEqual([395, 393]);
  expect(await revisions(10_000)).toEqual([399, 397]);
  expect(await revisions(3)).toEqual([]);
  expect(await revisions(1)).toEqual([]);
  const all = await store.historyBackwards('hosts.a', 256);
  expect(all.before).toEqual({ kind: 'gone' });
  expect(all.changes.length).toBeGreaterThanOrEqual(HISTORY_PER_KEY);
  expect(all.changes.length).toBeLessThan(2 * HISTORY_PER_KEY);
  expect(await store.historyBackwards('hosts.gone', 10)).toEqual({
    changes: [],
    before: { kind: 'nothing' },
  });
  await store.close();
});

test('old changes and entries are deleted a bounded number at a time', async () => {
  const hand = new HandClock();
  const retention = testedRetention(1_000);
  const store = await openSqliteStore({ path, random, clock: hand, retention });
  const old = SWEEP_ROWS_MAX * 3;
  let revision: number | 'absent' = 'absent';
  const puts: Promise<unknown>[] = [];
  for (let at = 0; at < old; at += 1) {
    const write = store.put(`${TESTED_PREFIX}.a`, bytes(`${at}`), revision);
    puts.push(write, store.log.append(`e${at}`, bytes('x')));
    revision = at + 1;
  }
  await Promise.all(puts);
  const kept = async () => {
    let changes = 0;
    for (let from: number | undefined = old; from !== undefined; ) {
      const { changes: some, before } = await store.historyBackwards(
        `${TESTED_PREFIX}.a`,
        256,
        from,
      );
      changes += some.length;
      from = before.kind === 'more' ? before.from : undefined;
    }
    return changes;
  };
  expect(await kept()).toBe(old);
  // The sweep after the first write has seen nothing old, and pauses.
  hand.move(600_000);
  const left: number[] = [];
  for (let step = 0; step < 4; step += 1) {
    hand.move(SWEEP_PAUSE_MS);
    await store.put(`other.k${step}`, bytes('x'), 'absent');
    left.push(await kept());
  }
  expect(left).toEqual([old - SWEEP_ROWS_MAX, old - 2 * SWEEP_ROWS_MAX, 64, 64]);
  expect((await store.log.back(10)).entries).toEqual([]);
  await store.close();
});

test.each([
  [8, /newer program/],
  [6, /no release wrote it/],
])('the store refuses a store of schema %i, and leaves it as it is', async (version, message) => {
  await (await openSqliteStore({ path, random, clock })).close();
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA user_version = ${version}`);
  database.close();
  const opening = openSqliteStore({ path, random, clock });
  await expect(opening).rejects.toMatchObject({
    code: 'otherSchema',
    message: expect.stringMatching(message),
  });
  expect(sqliteFileProblem(path)).toMatch(message);
  const after = new DatabaseSync(path);
  expect(after.prepare('PRAGMA user_version').get()).toEqual({ user_version: version });
  after.close();
});

test('the store refuses the database of another program, and leaves it as it is', async () => {
  const database = new DatabaseSync(path);
  database.exec('CREATE TABLE recipes (name TEXT)');
  database.close();
  const opening = openSqliteStore({ path, random, clock });
  await expect(opening).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(/another program/),
  });
  const after = new DatabaseSync(path);
  expect(after.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' });
  after.close();
});

test('the store refuses a file that is no database', async () => {
  await writeFile(path, 'not a database, but long enough to have a header of its own'.repeat(20));
  await expect(openSqliteStore({ path, random, clock })).rejects.toMatchObject({ code: 'corrupt' });
});

test('a file that cannot store a new dictionary is closed with an error', async () => {
  await (await openSqliteStore({ path, random, clock })).close();
  const alter = (sql: string) => {
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
  };
  alter(`CREATE TRIGGER no_room BEFORE INSERT ON dictionaries
    BEGIN SELECT RAISE(ABORT, 'no room'); END`);
  const dictionary = bytes('usual');
  await expect(openSqliteStore({ path, random, clock, dictionary })).rejects.toMatchObject({
    code: 'notWritable',
    message: expect.stringMatching(/no room/),
  });
  alter('DROP TRIGGER no_room');
  await (await openSqliteStore({ path, random, clock, dictionary })).close();
});

test('the store is copied while it is written, as it was at one moment of that', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const value = new Uint8Array(20_000).fill(1);
  for (let index = 0; index < 200; index += 1) await store.put(`hosts.h${index}`, value, 'absent');
  const copy = join(folder, 'copy.db');
  await writeFile(copy, '', { mode: 0o600 });
  let copying = true;
  const copied = store.copyTo?.(copy).finally(() => {
    copying = false;
  });
  copied?.catch(() => {}); // reported below, once nothing is written any more
  let written = 0;
  while (copying) {
    await store.put(`hosts.later${written}`, value, 'absent');
    written += 1;
  }
  await copied;
  await store.put('hosts.afterwards', value, 'absent');
  expect(sqliteFileProblem(copy)).toBeUndefined();
  expect((await stat(copy)).mode & 0o777).toBe(0o600);
  const opened = await openSqliteStore({ path: copy, random, clock });
  const revision = await opened.latestRevision();
  expect(revision).toBeGreaterThanOrEqual(200);
  expect(revision).toBeLessThanOrEqual(200 + written);
  expect(opened.incarnation).toBe(store.incarnation);
  // It holds a range without a hole.
  expect((await opened.list('hosts')).entries).toHaveLength(revision);
  await opened.close();
  await store.close();
});

test('the store is copied whenever it is asked, however much is written just then', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const value = new Uint8Array(20_000).fill(1);
  for (let index = 0; index < 100; index += 1) await store.put(`hosts.h${index}`, value, 'absent');
  let copying = true;
  const writing = (async (): Promise<number> => {
    let written = 0;
    for (; copying; written += 1) await store.put(`hosts.later${written}`, value, 'absent');
    return written;
  })();
  try {
    for (let copy = 0; copy < 12; copy += 1) await store.copyTo?.(join(folder, `copy${copy}.db`));
  } finally {
    copying = false;
  }
  expect(await writing).toBeGreaterThan(12);
  expect(await store.latestRevision()).toBe(100 + (await writing));
  expect(sqliteFileProblem(join(folder, 'copy11.db'))).toBeUndefined();
  await store.close();
});

test('the store is closed while a copy of it begins, and loses no write', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const copying = store.copyTo?.(join(folder, 'copy.db')).catch(() => {});
  const written = store.put('hosts.h1', new Uint8Array(10), 'absent');
  await store.close();
  expect(await written).toMatchObject({ kind: 'ok' });
  await copying;
});

test('a foreign or damaged file is recognized', async () => {
  const store = await openSqliteStore({ path, random, clock });
  const value = new Uint8Array(20_000).fill(1);
  for (let index = 0; index < 50; index += 1) await store.put(`hosts.h${index}`, value, 'absent');
  await store.close();
  expect(sqliteFileProblem(path)).toBeUndefined();
  expect(sqliteFileProblem(join(folder, 'none.db'))).toContain('cannot be read');
  await writeFile(join(folder, 'text.db'), 'not a database, but long enough to be looked at');
  expect(sqliteFileProblem(join(folder, 'text.db'))).toContain('text.db');
  const other = new DatabaseSync(join(folder, 'other.db'));
  other.exec('CREATE TABLE t (x)');
  other.close();
  expect(sqliteFileProblem(join(folder, 'other.db'))).toContain('no store of this program');
  await truncate(path, 100_000);
  expect(sqliteFileProblem(path)).toBeDefined();
});
