/**
 * The SQLite driver: embedded, one process, durable by WAL with `synchronous=FULL`.
 *
 * Q1 Group commit: the writes of one pass of the event loop share a transaction; each is answered
 *    only after COMMIT has returned (S4). They are decided one after another inside it, so that the
 *    second of two that expect the same revision is a conflict (S2).
 * Q2 A COMMIT that fails answers all its writes `unknown`. When the disk itself failed, its content
 *    is no longer certain: the store then closes, and opening it again reads the truth.
 * Q3 Entries of the log share the transaction of the writes of their pass.
 *
 * Must not: offer the transaction to callers; the other drivers have none.
 */
import { backup, type DatabaseSync } from 'node:sqlite';
import { type Clock, errorText, type Random, randomId } from '@rackwright/platform';
import {
  asWriteId,
  type Change,
  checkListPage,
  checkPage,
  checkRevision,
  checkValue,
  checkWriteId,
  type ExpectedRevision,
  type GetResult,
  HISTORY_PER_KEY,
  type KeyHistory,
  type Listing,
  type ListPage,
  PAST_CHANGES_MAX,
  RETENTION_DEFAULT,
  type Retention,
  type StateStore,
  type StoreIncarnation,
  type StoreRevision,
  type WatchEvent,
  type WriteId,
  type WriteResult,
} from '../contract.ts';
import { type AppendResult, checkLogValue, type EntryLog, LOG_PAGE_MAX } from '../entry-log.ts';
import { StoreError } from '../errors.ts';
import { checkKey, checkPrefix, isUnder } from '../key.ts';
import { pullChanges, WakeUp } from '../pull.ts';
import { decideWrite, pastOf, publicChange, readResult, type StoredChange } from '../write.ts';
import { SqliteDatabase } from './database.ts';
import { SqliteEntries } from './entries.ts';
import { asStoreError, type OpenedDatabase, openDatabase, sqliteCode } from './open.ts';
import { Sweeper } from './sweep.ts';
import { Values } from './values.ts';

/** Writes in one transaction; keeps the event loop's pause to a few milliseconds. */
export const GROUP_WRITES_MAX = 256;
/** Turns of the event loop that a group is waited for at most while it grows. */
const GROUP_POLLS_MAX = 4;

const SQLITE_FULL = 13;
/** Pages copied before other work runs. */
const COPY_PAGES_AT_ONCE = 256;

export interface SqliteStoreOptions {
  /** The database file; its folder must exist. Beside it SQLite keeps `-wal`. */
  readonly path: string;
  readonly random: Random;
  /** The clock of the age limits. */
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly retention?: Retention;
  /**
   * Frequent content of values, the most usual last, at most `DICTIONARY_BYTES_MAX`: it compresses
   * them; without one they are written uncompressed. The file keeps it, beside those of others.
   */
  readonly dictionary?: Uint8Array;
  /** A restored or imported file: a new incarnation. */
  readonly restored?: boolean;
}

/** Opens or creates a store. Throws `notWritable`, `inUse`, `otherSchema`, `corrupt`. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<StateStore> {
  const { path, random, restored = false } = options;
  const opened = await openDatabase(path, random, restored);
  try {
    return new SqliteStore(opened, options);
  } catch (error) {
    // A new dictionary is written, for which the disk may have no room.
    opened.database.close();
    throw asStoreError(error, path);
  }
}

/** Something to be done in the next transaction. */
interface QueuedDecision {
  /** Inside the transaction; the returned function answers the caller, after the commit. */
  decide(): () => void;
  /** Nobody knows whether it was done. */
  fail(reason: string): void;
}

interface PendingWrite {
  readonly key: string;
  /** Missing: delete. */
  readonly value?: Uint8Array;
  readonly expected: ExpectedRevision;
  readonly writeId: WriteId;
  /** The caller chose the id, and may have sent it before. */
  readonly mayHaveLanded: boolean;
}

class SqliteStore implements StateStore {
  readonly driver = 'sqlite';
  readonly isShared = false;
  readonly incarnation: StoreIncarnation;
  readonly survivesPowerLoss: StateStore['survivesPowerLoss'];
  readonly log: EntryLog;
  readonly #file: DatabaseSync;
  readonly #database: SqliteDatabase;
  readonly #entries: SqliteEntries;
  readonly #sweeper: Sweeper;
  readonly #retention: Retention;
  readonly #random: Random;
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #wakeUp = new WakeUp();
  readonly #pending: QueuedDecision[] = [];
  /** Copies whose first pages are not read yet: writes wait for these. */
  #copiesBeginning = 0;

  constructor(opened: OpenedDatabase, options: SqliteStoreOptions) {
    this.incarnation = opened.incarnation;
    this.survivesPowerLoss = opened.survivesPowerLoss;
    this.#retention = options.retention ?? RETENTION_DEFAULT;
    this.#file = opened.database;
    const values = new Values(opened.database, options.dictionary);
    this.#database = new SqliteDatabase(opened.database, values, (key) => this.#isKeptByAge(key));
    this.#entries = new SqliteEntries(opened.database);
    this.#sweeper = new Sweeper(
      opened.database,
      { entries: this.#entries, past: this.#database.past },
      this.#retention,
    );
    this.#random = options.random;
    this.#clock = options.clock;
    this.log = {
      append: async (id, value) => this.#append(id, value),
      back: async (limit, before) => {
        checkPage(limit, LOG_PAGE_MAX, before);
        return this.#read(() => this.#entries.back(limit, before));
      },
    };
  }

  async get(key: string): Promise<GetResult> {
    checkKey(key);
    return readResult(
      key,
      this.#read(() => this.#database.last(key)),
    );
  }

  async list(prefix: string, page?: ListPage): Promise<Listing> {
    checkPrefix(prefix);
    checkListPage(page);
    return this.#read(() => {
      const entries = [];
      for (const change of this.#database.live(prefix, page?.after, page?.limit)) {
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
    expected: ExpectedRevision,
    writeId?: WriteId,
  ): Promise<WriteResult> {
    checkKey(key);
    checkValue(key, value);
    if (expected !== 'absent') checkRevision(expected, 1);
    return this.#accept({ key, value: Uint8Array.from(value), expected }, writeId);
  }

  async delete(key: string, expected: StoreRevision, writeId?: WriteId): Promise<WriteResult> {
    checkKey(key);
    checkRevision(expected, 1);
    return this.#accept({ key, expected }, writeId);
  }

  watch(from: StoreRevision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    checkRevision(from, 0);
    checkPrefix(prefix);
    this.#checkOpen();
    return pullChanges(this.#database, this.#wakeUp, from, prefix, signal);
  }

  async history(key: string): Promise<readonly Change[]> {
    checkKey(key);
    return this.#read(() =>
      this.#database
        .back(key, HISTORY_PER_KEY, Number.MAX_SAFE_INTEGER)
        .toReversed()
        .map(publicChange),
    );
  }

  async historyBackwards(key: string, limit: number, from?: StoreRevision): Promise<KeyHistory> {
    checkKey(key);
    checkPage(limit, PAST_CHANGES_MAX, from);
    return this.#read(() => {
      const found = this.#database.back(key, limit + 1, from ?? Number.MAX_SAFE_INTEGER);
      return pastOf(found, limit, from);
    });
  }

  async latestRevision(): Promise<StoreRevision> {
    return this.#read(() => this.#database.latest());
  }

  presentRevision(): Promise<StoreRevision> {
    return this.latestRevision();
  }

  async close(): Promise<void> {
    while (this.#pending.length > 0) this.#commitGroup();
    this.#end();
  }

  #accept(
    write: Pick<PendingWrite, 'key' | 'value' | 'expected'>,
    chosenId: WriteId | undefined,
  ): Promise<WriteResult> {
    const writeId = chosenId ?? asWriteId(randomId(this.#random));
    checkWriteId(writeId);
    this.#checkOpen();
    const mayHaveLanded = chosenId !== undefined;
    return this.#queue(
      () => this.#write({ ...write, writeId, mayHaveLanded }),
      (reason): WriteResult => ({ kind: 'unknown', writeId, reason }),
    );
  }

  #append(id: string, value: Uint8Array): Promise<AppendResult> {
    checkWriteId(id);
    checkLogValue(value);
    this.#checkOpen();
    const kept = Uint8Array.from(value);
    return this.#queue<AppendResult>(
      () => ({ kind: 'ok', position: this.#entries.add(id, kept, this.#clock.nowMs()) }),
      (reason) => ({ kind: 'unknown', reason }),
    );
  }

  #queue<T>(decide: () => T, unknown: (reason: string) => T): Promise<T> {
    return new Promise((answer) => {
      this.#pending.push({
        decide: () => {
          const result = decide();
          return () => answer(result);
        },
        fail: (reason) => answer(unknown(reason)),
      });
      if (this.#pending.length === 1) this.#commitSoon();
    });
  }

  /** Waits while each look finds more writes, so that all share a commit; a few times at most. */
  #commitSoon(polls = GROUP_POLLS_MAX): void {
    const seen = this.#pending.length;
    setImmediate(() => {
      if (this.#copiesBeginning !== 0) return;
      const { length } = this.#pending;
      const grows = length > seen && length < GROUP_WRITES_MAX;
      if (grows && polls > 1) this.#commitSoon(polls - 1);
      else this.#commitGroup();
    });
  }

  #commitGroup(): void {
    const group = this.#pending.splice(0, GROUP_WRITES_MAX);
    if (group.length === 0) return;
    if (this.#pending.length > 0) this.#commitSoon();
    const answers: (() => void)[] = [];
    const nowMs = this.#clock.nowMs();
    try {
      this.#database.transaction(() => {
        for (const each of group) answers.push(each.decide());
        if (this.#sweeper.isDue(nowMs)) this.#sweeper.step(nowMs);
      });
    } catch (error) {
      this.#answerUnknown(group, error);
      return;
    }
    for (const answer of answers) answer();
    this.#wakeUp.wakeAll();
  }

  /** Inside a transaction. */
  #write(write: PendingWrite): WriteResult {
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
        const revision = this.#database.latest() + 1;
        const atMs = this.#clock.nowMs();
        const written = { key, revision, writeId, previous: decision.previous, atMs };
        const change: StoredChange =
          value === undefined ? { kind: 'delete', ...written } : { kind: 'put', ...written, value };
        this.#database.add(change);
        return { kind: 'ok', revision: change.revision, writeId };
      }
    }
  }

  #isKeptByAge(key: string): boolean {
    return this.#retention.historyPrefixes.some((prefix) => isUnder(prefix, key));
  }

  #answerUnknown(group: readonly QueuedDecision[], error: unknown): void {
    const reason = errorText(error);
    for (const each of group) each.fail(reason);
    if (sqliteCode(error) === SQLITE_FULL) return;
    for (const each of this.#pending.splice(0)) each.fail(reason);
    this.#end();
  }

  /**
   * A few pages at a time: writes of this process meanwhile are included. Only the first of them
   * must not meet a write: Node takes that for a failure, and calls it "not an error".
   */
  async copyTo(path: string): Promise<void> {
    this.#checkOpen();
    this.#copiesBeginning += 1;
    let isBeginning = true;
    const hasBegun = (): void => {
      if (!isBeginning) return;
      isBeginning = false;
      this.#copiesBeginning -= 1;
      if (this.#pending.length > 0) this.#commitSoon();
    };
    try {
      await backup(this.#file, path, { rate: COPY_PAGES_AT_ONCE, progress: hasBegun });
    } finally {
      hasBegun();
    }
  }

  #read<T>(query: () => T): T {
    this.#checkOpen();
    try {
      return query();
    } catch (error) {
      const reason = errorText(error);
      throw new StoreError('unavailable', `the store could not be read: ${reason}`, error);
    }
  }

  #end(): void {
    if (this.#wakeUp.ended) return;
    this.#wakeUp.end();
    this.#database.close();
  }

  #checkOpen(): void {
    if (this.#wakeUp.ended) throw new StoreError('closed', 'this store is closed; open it again');
  }
}
