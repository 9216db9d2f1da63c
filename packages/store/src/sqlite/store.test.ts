import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { nodeRandom } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { storeConformance } from '../conformance/suite.ts';
import { openSqliteStore } from './store.ts';
import { sqliteSubject } from './subject.ts';

storeConformance('the SQLite store', sqliteSubject);

let folder = '';
let path = '';
const random = nodeRandom();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-store-'));
  path = join(folder, 'store.db');
});

afterEach(() => rm(folder, { recursive: true }));

test('keeps its values, revisions and incarnation when it is closed and opened again', async () => {
  const before = await openSqliteStore({ path, random });
  await before.put('hosts.a', bytes('one'), 'absent');
  await before.close();
  const after = await openSqliteStore({ path, random });
  expect(after.incarnation).toBe(before.incarnation);
  expect(await after.get('hosts.a')).toMatchObject({ kind: 'found', revision: 1 });
  expect(await after.put('hosts.b', bytes('two'), 'absent')).toMatchObject({ revision: 2 });
  await after.close();
});

test('is a new incarnation, with revisions that go on, when opened as restored', async () => {
  const before = await openSqliteStore({ path, random });
  await before.put('hosts.a', bytes('one'), 'absent');
  await before.close();
  const after = await openSqliteStore({ path, random, restored: true });
  expect(after.incarnation).not.toBe(before.incarnation);
  expect(await after.latestRevision()).toBe(1);
  await after.close();
});

test('answers writes that were still waiting when it was closed', async () => {
  const store = await openSqliteStore({ path, random });
  const write = store.put('hosts.a', bytes('one'), 'absent');
  await store.close();
  expect(await write).toMatchObject({ kind: 'ok', revision: 1 });
});

test('is readable by its owner only', async () => {
  const store = await openSqliteStore({ path, random });
  await store.put('hosts.a', bytes('one'), 'absent');
  for (const file of [path, `${path}-wal`]) expect((await stat(file)).mode & 0o777).toBe(0o600);
  await store.close();
});

test('refuses a second opener while the first has it', async () => {
  const store = await openSqliteStore({ path, random });
  const second = openSqliteStore({ path, random });
  await expect(second).rejects.toMatchObject({
    code: 'inUse',
    message: expect.stringMatching(/another process/),
  });
  await store.close();
  await (await openSqliteStore({ path, random })).close();
});

test('refuses a folder that is missing, and names it', async () => {
  const missing = openSqliteStore({ path: join(folder, 'missing', 'store.db'), random });
  await expect(missing).rejects.toMatchObject({
    code: 'notWritable',
    message: expect.stringMatching(/missing must exist/),
  });
});

test('refuses a folder that it may not write to', async (context) => {
  if (process.getuid?.() === 0) context.skip('root may write everywhere');
  await chmod(folder, 0o500);
  await expect(openSqliteStore({ path, random })).rejects.toMatchObject({ code: 'notWritable' });
  await chmod(folder, 0o700);
});

test('refuses a store written by a newer program, and leaves it as it is', async () => {
  await (await openSqliteStore({ path, random })).close();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 2');
  database.close();
  const opening = openSqliteStore({ path, random });
  await expect(opening).rejects.toMatchObject({
    code: 'schemaTooNew',
    message: expect.stringMatching(/newer program/),
  });
  const after = new DatabaseSync(path);
  expect(after.prepare('PRAGMA user_version').get()).toEqual({ user_version: 2 });
  after.close();
});

test('refuses the database of another program, and leaves it as it is', async () => {
  const database = new DatabaseSync(path);
  database.exec('CREATE TABLE recipes (name TEXT)');
  database.close();
  const opening = openSqliteStore({ path, random });
  await expect(opening).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(/another program/),
  });
  const after = new DatabaseSync(path);
  expect(after.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' });
  after.close();
});

test('refuses a file that is no database', async () => {
  await writeFile(path, 'not a database, but long enough to have a header of its own'.repeat(20));
  await expect(openSqliteStore({ path, random })).rejects.toMatchObject({ code: 'corrupt' });
});
