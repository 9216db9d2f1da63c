/**
 * The statements of the SQLite driver: the one place that knows the tables. Everything here is
 * synchronous; nothing outside a `transaction` writes. Data in `RecentChanges` is not read again:
 * the file is locked, so that nobody else writes it.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { asWriteId, HISTORY_PER_KEY, type StoreRevision, type WriteId } from '../contract.ts';
import type { ChangeLog } from '../pull.ts';
import type { StoredChange } from '../write.ts';
import { KeyPast } from './key-past.ts';
import { NewestKeys, type WaitingLimits } from './newest-keys.ts';
import { RecentChanges } from './recent.ts';
import type { Values } from './values.ts';

const COLUMNS = 'c.revision, c.key, c.live, c.value, c.write_id, c.previous, c.time_ms, c.packed';
/**
 * Changes that a key has beyond `HISTORY_PER_KEY` before they go, all at once: to find them costs a
 * look at each that stays.
 */
const TRIM_CHANGES = HISTORY_PER_KEY;
const NEWEST = 'newest AS n JOIN changes AS c ON c.revision = n.revision';
/**
 * Live keys after one key and before another: a range of the index of keys, without a read of
 * others.
 */
const BETWEEN = `SELECT ${COLUMNS} FROM ${NEWEST}
  WHERE n.key > :after AND n.key < :end AND c.live = 1 ORDER BY n.key LIMIT :limit`;
/** Follows every key: keys are ASCII. */
const AFTER_ALL = '\u007f';
/** A page without a bound. */
const NO_LIMIT = -1;
const NOTHING = new Uint8Array(0);

/** A row of `changes`; an alias, because only aliases are assignable from node:sqlite's rows. */
type Row = {
  readonly revision: number;
  readonly key: string;
  readonly live: number;
  readonly value: Uint8Array;
  readonly write_id: string;
  readonly previous: number;
  readonly time_ms: number;
  readonly packed: number;
};

export class SqliteDatabase implements ChangeLog {
  readonly #database: DatabaseSync;
  readonly #values: Values;
  readonly #latest: StatementSync;
  readonly #last: StatementSync;
  readonly #between: StatementSync;
  readonly #after: StatementSync;
  readonly #afterUnder: StatementSync;
  readonly #insert: StatementSync;
  readonly #byRevision: StatementSync;
  readonly #keys: NewestKeys;
  readonly #isKeptByAge: (key: string) => boolean;
  /** The earlier changes of each key, before its last one. */
  readonly past: KeyPast;
  readonly #recent = new RecentChanges();
  /** Undefined: only the file knows. */
  #latestRevision: StoreRevision | undefined;

  /** Keys that are not kept by age have only their last changes. */
  constructor(
    database: DatabaseSync,
    values: Values,
    isKeptByAge: (key: string) => boolean,
    limits?: WaitingLimits,
  ) {
    this.#database = database;
    this.#isKeptByAge = isKeptByAge;
    this.#values = values;
    this.#latest = database.prepare('SELECT max(revision) AS latest FROM changes');
    this.#last = database.prepare(`SELECT ${COLUMNS} FROM ${NEWEST} WHERE n.key = ?`);
    this.#between = database.prepare(BETWEEN);
    this.#after = database.prepare(
      `SELECT ${COLUMNS} FROM changes AS c WHERE c.revision > :after
       ORDER BY c.revision LIMIT :limit`,
    );
    // By revision, not by key (what "+" rules out): a follower is near the end of the log.
    this.#afterUnder = database.prepare(
      `SELECT ${COLUMNS} FROM changes AS c WHERE c.revision > :after
       AND (+c.key = :prefix OR (+c.key > :prefix || '.' AND +c.key < :prefix || '/'))
       ORDER BY c.revision LIMIT :limit`,
    );
    this.#insert = database.prepare(
      `INSERT INTO changes (revision, key, live, value, write_id, previous, time_ms, packed)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#byRevision = database.prepare(`SELECT ${COLUMNS} FROM changes AS c WHERE c.revision = ?`);
    this.#keys = new NewestKeys(database, limits);
    this.past = new KeyPast(database, this.#keys);
  }

  latest(): StoreRevision {
    this.#latestRevision ??= Number(this.#latest.get()?.['latest'] ?? 0);
    return this.#latestRevision;
  }

  after(revision: StoreRevision, prefix: string, limit: number): readonly StoredChange[] {
    if (revision >= this.latest()) return [];
    const recent = this.#recent.after(revision, prefix, limit);
    if (recent !== undefined) return recent;
    const rows =
      prefix === ''
        ? this.#after.all({ after: revision, limit })
        : this.#afterUnder.all({ after: revision, prefix, limit });
    return rows.map(this.#asChange);
  }

  last(key: string): StoredChange | undefined {
    const known = this.#recent.newest(key);
    if (known !== undefined) return known;
    const revision = this.#keys.waitingRevision(key);
    const row = revision === undefined ? this.#last.get(key) : this.#byRevision.get(revision);
    if (row === undefined) return undefined;
    const change = this.#asChange(row);
    this.#recent.keepNewest(change);
    return change;
  }

  /** The last changes of live keys under `prefix` after the key `after`, ordered by key. */
  live(prefix: string, after = '', limit = NO_LIMIT): readonly StoredChange[] {
    if (prefix === '') return this.#live(after, AFTER_ALL, limit);
    const own = after < prefix ? this.last(prefix) : undefined;
    const first = own?.kind === 'put' ? [own] : [];
    const below = `${prefix}.`;
    const rest = limit === NO_LIMIT ? limit : limit - first.length;
    // "/" is the code unit after ".".
    return [...first, ...this.#live(after > below ? after : below, `${prefix}/`, rest)];
  }

  /** The table's rows, with keys of newer changes in their places. */
  #live(after: string, end: string, limit: number): readonly StoredChange[] {
    if (limit === 0) return [];
    const waiting = this.#keys.between(after, end);
    const found: StoredChange[] = [];
    let next = 0;
    const isFull = () => found.length === limit;
    const takeWaiting = (): void => {
      const change = this.last(waiting[next] ?? '');
      next += 1;
      if (change?.kind === 'put') found.push(change);
    };
    for (let from = after; ; ) {
      const rows = this.#between.all({ after: from, end, limit }).map(this.#asChange);
      if (waiting.length === 0) return rows;
      for (const row of rows) {
        while ((waiting[next] ?? end) < row.key && !isFull()) takeWaiting();
        if (isFull()) return found;
        if (waiting[next] === row.key) takeWaiting();
        else found.push(row);
        if (isFull()) return found;
      }
      if (limit === NO_LIMIT || rows.length < limit) break;
      from = rows.at(-1)?.key ?? end;
    }
    while (next < waiting.length && !isFull()) takeWaiting();
    return found;
  }

  /** The last `limit` changes of a key up to revision `from`, newest first. */
  back(key: string, limit: number, from: StoreRevision): readonly StoredChange[] {
    return this.past.back(key, limit, from).map(this.#asChange);
  }

  /** The revision of the write with this id among the last `HISTORY_PER_KEY` changes of `key`. */
  revisionOf(key: string, writeId: WriteId): StoreRevision | undefined {
    return this.past.revisionOf(key, writeId);
  }

  /** Only inside `transaction`. */
  add(change: StoredChange): void {
    const { revision, key, writeId, previous, atMs = 0 } = change;
    const { bytes, packed } = this.#values.stored(change.kind === 'put' ? change.value : NOTHING);
    const live = change.kind === 'put' ? 1 : 0;
    this.#insert.run(revision, key, live, bytes, writeId, previous, atMs, packed);
    this.#keys.add(key, revision);
    this.#latestRevision = revision;
    this.#recent.add(change);
  }

  /** Runs `work` and commits; returns once the outcome is on disk. Rolls back when it throws. */
  transaction(work: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#keys.write(this.#trimmed);
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#latestRevision = undefined;
      this.#recent.forget();
      this.#keys.rolledBack();
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  /** A key that has more changes than must stay loses the rest now and then. */
  readonly #trimmed = (key: string, kept: number): void => {
    if (kept < HISTORY_PER_KEY + TRIM_CHANGES || this.#isKeptByAge(key)) return;
    this.past.trim(key);
  };

  close(): void {
    this.#database.close();
  }

  readonly #asChange = (record: Record<string, unknown>): StoredChange => {
    const row = record as Row;
    const { revision, key, previous, packed } = row;
    const at = row.time_ms === 0 ? {} : { atMs: row.time_ms };
    const written = { key, revision, writeId: asWriteId(row.write_id), previous, ...at };
    if (row.live !== 1) return { kind: 'delete', ...written };
    return { kind: 'put', ...written, value: this.#values.read({ bytes: row.value, packed }) };
  };
}
