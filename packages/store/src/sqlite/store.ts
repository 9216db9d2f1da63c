/**
 * The SQLite driver: embedded, one process, durable by WAL with `synchronous=FULL`.
 *
 *  Q1 Group commit: the writes of one turn of the event loop share a transaction; each is answered
 *     only after COMMIT has returned (S4). They are decided one after another inside it, so that
 *     the second of two that expect the same revision is a conflict (S2).
 *  Q2 A COMMIT that fails answers all its writes `unknown`. When the disk itself failed, what is
 *     on it is no longer certain: the store then closes, and opening it again reads the truth.
 *
 * Must not: offer the transaction to callers; the other drivers have none.
 */
import { type Random, randomId } from '@rackwright/platform';
import {
  type Change,
  checkRevision,
  checkValue,
  checkWriteId,
  type Expected,
  type GetResult,
  type Listing,
  type Revision,
  type StateStore,
  type WatchEvent,
  type WriteResult,
} from '../contract.ts';
import { StoreError } from '../errors.ts';
import { checkKey, checkPrefix } from '../key.ts';
import { Bell, pullChanges } from '../pull.ts';
import { decideWrite, publicChange, readResult, type StoredChange } from '../write.ts';
import { SqliteDatabase } from './database.ts';
import { type OpenedDatabase, openDatabase, sqliteCode } from './open.ts';

/** Writes in one transaction; keeps the event loop's pause to a few milliseconds. */
export const GROUP_WRITES_MAX = 256;

const SQLITE_FULL = 13;

export interface SqliteStoreOptions {
  /** The database file; its folder must exist. Beside it SQLite keeps `-wal`. */
  readonly path: string;
  readonly random: Random;
  /** A restored or imported file: a new incarnation. */
  readonly restored?: boolean;
}

/** Opens or creates a store. Throws `notWritable`, `inUse`, `schemaTooNew`, `corrupt`. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<StateStore> {
  const { path, random, restored = false } = options;
  return new SqliteStore(await openDatabase(path, random, restored), random);
}

interface PendingWrite {
  readonly key: string;
  /** Missing: delete. */
  readonly value?: Uint8Array;
  readonly expected: Expected;
  readonly writeId: string;
  /** The caller chose the id, and may have sent it before. */
  readonly mayHaveLanded: boolean;
  readonly answer: (result: WriteResult) => void;
}

class SqliteStore implements StateStore {
  readonly driver = 'sqlite';
  readonly incarnation: string;
  readonly survivesPowerLoss: StateStore['survivesPowerLoss'];
  readonly #database: SqliteDatabase;
  readonly #random: Random;
  readonly #bell = new Bell();
  readonly #pending: PendingWrite[] = [];

  constructor(opened: OpenedDatabase, random: Random) {
    this.incarnation = opened.incarnation;
    this.survivesPowerLoss = opened.survivesPowerLoss;
    this.#database = new SqliteDatabase(opened.database);
    this.#random = random;
  }

  async get(key: string): Promise<GetResult> {
    checkKey(key);
    return readResult(
      key,
      this.#read(() => this.#database.last(key)),
    );
  }

  async list(prefix: string): Promise<Listing> {
    checkPrefix(prefix);
    return this.#read(() => {
      const entries = [];
      for (const change of this.#database.live(prefix)) {
        if (change.kind !== 'put') continue;
        const { key, value, revision, writeId } = change;
        entries.push({ key, value, revision, writeId });
      }
      return { entries, before: this.#database.latest() };
    });
  }

  async put(
    key: string,
    value: Uint8Array,
    expected: Expected,
    writeId?: string,
  ): Promise<WriteResult> {
    checkKey(key);
    checkValue(key, value);
    if (expected !== 'absent') checkRevision(expected, 1);
    return this.#accept({ key, value: Uint8Array.from(value), expected }, writeId);
  }

  async delete(key: string, expected: Revision, writeId?: string): Promise<WriteResult> {
    checkKey(key);
    checkRevision(expected, 1);
    return this.#accept({ key, expected }, writeId);
  }

  watch(from: Revision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    checkRevision(from, 0);
    checkPrefix(prefix);
    this.#checkOpen();
    return pullChanges(this.#database, this.#bell, from, prefix, signal);
  }

  async history(key: string): Promise<readonly Change[]> {
    checkKey(key);
    return this.#read(() => this.#database.changesOf(key).map(publicChange));
  }

  async latestRevision(): Promise<Revision> {
    return this.#read(() => this.#database.latest());
  }

  async close(): Promise<void> {
    while (this.#pending.length > 0) this.#commitGroup();
    this.#end();
  }

  #accept(
    write: Pick<PendingWrite, 'key' | 'value' | 'expected'>,
    chosenId: string | undefined,
  ): Promise<WriteResult> {
    const writeId = chosenId ?? randomId(this.#random);
    checkWriteId(writeId);
    this.#checkOpen();
    const mayHaveLanded = chosenId !== undefined;
    return new Promise((answer) => {
      this.#pending.push({ ...write, writeId, mayHaveLanded, answer });
      if (this.#pending.length === 1) setImmediate(() => this.#commitGroup());
    });
  }

  #commitGroup(): void {
    const group = this.#pending.splice(0, GROUP_WRITES_MAX);
    if (group.length === 0) return;
    if (this.#pending.length > 0) setImmediate(() => this.#commitGroup());
    const results: WriteResult[] = [];
    try {
      this.#database.transaction(() => {
        let latest = this.#database.latest();
        for (const write of group) {
          const result = this.#write(write, latest);
          if (result.kind === 'ok') latest = Math.max(latest, result.revision);
          results.push(result);
        }
      });
    } catch (error) {
      this.#answerUnknown(group, error);
      return;
    }
    for (const [at, write] of group.entries()) write.answer(results[at] as WriteResult);
    this.#bell.ring();
  }

  /** Inside a transaction. */
  #write(write: PendingWrite, latest: Revision): WriteResult {
    const { key, value, expected, writeId } = write;
    const earlier = write.mayHaveLanded ? this.#database.revisionOf(key, writeId) : undefined;
    if (earlier !== undefined) return { kind: 'ok', revision: earlier, writeId };
    const last = this.#database.last(key);
    const decision = decideWrite(last, expected, writeId);
    switch (decision.kind) {
      case 'conflict':
        return { kind: 'conflict', current: readResult(key, last) };
      case 'landed':
        return { kind: 'ok', revision: decision.revision, writeId };
      case 'write': {
        const written = { key, revision: latest + 1, writeId, previous: decision.previous };
        const change: StoredChange =
          value === undefined ? { kind: 'delete', ...written } : { kind: 'put', ...written, value };
        this.#database.add(change);
        return { kind: 'ok', revision: change.revision, writeId };
      }
    }
  }

  #answerUnknown(group: readonly PendingWrite[], error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    for (const { writeId, answer } of group) answer({ kind: 'unknown', writeId, reason });
    if (sqliteCode(error) === SQLITE_FULL) return;
    for (const { writeId, answer } of this.#pending.splice(0)) {
      answer({ kind: 'unknown', writeId, reason });
    }
    this.#end();
  }

  #read<T>(query: () => T): T {
    this.#checkOpen();
    try {
      return query();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new StoreError('unavailable', `the store could not be read: ${reason}`, error);
    }
  }

  #end(): void {
    if (this.#bell.ended) return;
    this.#bell.end();
    this.#database.close();
  }

  #checkOpen(): void {
    if (this.#bell.ended) throw new StoreError('closed', 'this store is closed; open it again');
  }
}
