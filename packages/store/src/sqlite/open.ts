/**
 * Opens the file: the lock, its durability, and a plain error when it cannot be opened.
 *
 * The file is locked for as long as it is open. Two control planes on one file would be a mistake
 * (watchers of one would not see the other's writes), so the second is refused.
 */
import { closeSync, constants, openSync, statfsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { errorText, type Random, randomId } from '@rackwright/platform';
import { asStoreIncarnation, type StateStore, type StoreIncarnation } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { APPLICATION_ID, SCHEMA, schemaProblem } from './schema.ts';

/**
 * Pages of the log after which it is copied into the file. A page that many writes have changed by
 * then is copied once. That holds for pages of the indexes, which were most of the written bytes
 * with SQLite's usual 1,000. The log takes 16 MiB, and one copying some tens of milliseconds.
 */
const CHECKPOINT_PAGES = 4_000;

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** File systems that forget at power loss, by `statfs` type: tmpfs, ramfs. */
const VOLATILE_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);
/** File systems whose fsync is not ours to judge: NFS, SMB (two), FUSE, 9p. */
const REMOTE_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x6969, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997,
]);

export interface OpenedDatabase {
  readonly database: DatabaseSync;
  readonly incarnation: StoreIncarnation;
  readonly survivesPowerLoss: StateStore['survivesPowerLoss'];
}

/** Opens or creates. Throws `notWritable`, `inUse`, `otherSchema`, `corrupt`. */
export async function openDatabase(
  path: string,
  random: Random,
  restored: boolean,
): Promise<OpenedDatabase> {
  await checkWritable(path);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0, enableForeignKeyConstraints: false });
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    const found = checkSchema(database, path);
    makeDurable(database, path);
    if (found === 'empty') database.exec(`BEGIN EXCLUSIVE; ${SCHEMA} COMMIT`);
    const incarnation = settleIncarnation(database, random, restored);
    return { database, incarnation, survivesPowerLoss: powerLoss(path) };
  } catch (error) {
    database?.close();
    throw asStoreError(error, path);
  }
}

/** SQLite's primary result code of an error thrown by node:sqlite, or undefined. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;
}

async function checkWritable(path: string): Promise<void> {
  const folder = dirname(path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    // Owner only: the records hold encrypted secrets. SQLite gives its other files the same mode.
    closeSync(openSync(path, 'a', 0o600));
  } catch (error) {
    const reason = errorText(error);
    throw new StoreError(
      'notWritable',
      `cannot write the store ${path} (${reason}); the folder ${folder} must exist and be writable`,
      error,
    );
  }
}

function makeDurable(database: DatabaseSync, path: string): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
  database.exec('PRAGMA synchronous = FULL');
  database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  const synchronous = database.prepare('PRAGMA synchronous').get()?.['synchronous'];
  if (mode !== 'wal' || synchronous !== 2) {
    throw new StoreError(
      'notWritable',
      `the store ${path} needs journal mode wal and synchronous 2 to be durable; this file ` +
        `system gives ${String(mode)} and ${String(synchronous)}`,
    );
  }
}

/** Whether there are tables of ours yet. Changes nothing. */
function checkSchema(database: DatabaseSync, path: string): 'empty' | 'ours' {
  const id = database.prepare('PRAGMA application_id').get()?.['application_id'];
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
  const tables = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.['count'];
  if (tables === 0) return 'empty';
  if (id !== APPLICATION_ID) {
    throw new StoreError(
      'corrupt',
      `${path} is a database of another program; give the path of a Rackwright store`,
    );
  }
  const problem = schemaProblem(path, version);
  if (problem !== undefined) throw new StoreError('otherSchema', problem);
  return 'ours';
}

function settleIncarnation(
  database: DatabaseSync,
  random: Random,
  restored: boolean,
): StoreIncarnation {
  const known = database.prepare('SELECT incarnation FROM identity').get()?.['incarnation'];
  if (typeof known === 'string' && !restored) return asStoreIncarnation(known);
  const incarnation = asStoreIncarnation(randomId(random));
  database
    .prepare('INSERT OR REPLACE INTO identity (only_row, incarnation) VALUES (1, ?)')
    .run(incarnation);
  return incarnation;
}

function powerLoss(path: string): StateStore['survivesPowerLoss'] {
  const { type } = statfsSync(path);
  if (VOLATILE_FILE_SYSTEMS.has(type)) return 'no';
  return REMOTE_FILE_SYSTEMS.has(type) ? 'unknown' : 'yes';
}

/** The error that opening throws for it. */
export function asStoreError(error: unknown, path: string): unknown {
  switch (sqliteCode(error)) {
    case SQLITE_BUSY:
      return new StoreError(
        'inUse',
        `the store ${path} is open in another process; only one control plane may use it`,
        error,
      );
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return new StoreError(
        'corrupt',
        `${path} is damaged or no database; restore a backup and open it as restored`,
        error,
      );
    case undefined:
      return error;
    default:
      return new StoreError(
        'notWritable',
        `cannot open the store ${path}: ${errorText(error)}`,
        error,
      );
  }
}
