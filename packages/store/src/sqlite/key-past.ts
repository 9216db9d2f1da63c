/**
 * The changes of one key, from its newest backwards: each names the one before it. So no index of
 * keys and revisions is kept, of which every write would change a page.
 *
 * Invariants:
 * 1. A walk ends where the named change is gone: earlier changes may be there still, and belong to
 *    nobody's past any more.
 * 2. `kept` of a key counts all of its changes that are there, or more.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { HISTORY_PER_KEY, type StoreRevision } from '../contract.ts';
import type { NewestKeys } from './newest-keys.ts';

/** Walks back from the change `:start`, at most `:limit` changes; `n` counts them from 1. */
const WALK = `WITH RECURSIVE walk (revision, previous, n) AS (
  SELECT revision, previous, 1 FROM changes WHERE revision = :start
  UNION ALL
  SELECT c.revision, c.previous, walk.n + 1 FROM walk JOIN changes AS c
  ON c.revision = walk.previous WHERE walk.n < :limit)`;

export class KeyPast {
  readonly #keys: NewestKeys;
  readonly #isOfKey: StatementSync;
  readonly #upTo: StatementSync;
  readonly #back: StatementSync;
  readonly #byWriteId: StatementSync;
  readonly #outlived: StatementSync;
  readonly #lasting: StatementSync;
  readonly #removeOne: StatementSync;

  constructor(database: DatabaseSync, keys: NewestKeys) {
    this.#keys = keys;
    this.#isOfKey = database.prepare('SELECT 1 FROM changes WHERE revision = ? AND key = ?');
    this.#upTo = database.prepare(
      `WITH RECURSIVE walk (revision, previous) AS (
       SELECT revision, previous FROM changes WHERE revision = :start
       UNION ALL
       SELECT c.revision, c.previous FROM walk JOIN changes AS c
       ON c.revision = walk.previous WHERE walk.revision > :from)
       SELECT revision FROM walk WHERE revision <= :from`,
    );
    this.#back = database.prepare(
      `${WALK} SELECT c.revision, c.key, c.live, c.value, c.write_id, c.previous, c.time_ms,
       c.packed FROM walk CROSS JOIN changes AS c ON c.revision = walk.revision`,
    );
    this.#byWriteId = database.prepare(
      `${WALK} SELECT c.revision FROM walk CROSS JOIN changes AS c
       ON c.revision = walk.revision WHERE c.write_id = :id LIMIT 1`,
    );
    this.#outlived = database.prepare(
      `DELETE FROM changes WHERE revision IN
       (${WALK} SELECT revision FROM walk WHERE n > ${HISTORY_PER_KEY})`,
    );
    this.#lasting = database.prepare(
      `${WALK} SELECT revision FROM walk WHERE n = ${HISTORY_PER_KEY}`,
    );
    this.#removeOne = database.prepare('DELETE FROM changes WHERE revision = ?');
  }

  /** Rows of the last `limit` changes of a key up to revision `from`, newest first. */
  back(key: string, limit: number, from: StoreRevision): readonly Record<string, unknown>[] {
    const start = this.#startOf(key, from);
    const rows = start === undefined ? [] : this.#back.all({ start, limit });
    // SQLite does not promise the order of such a walk.
    return rows.sort((one, other) => Number(other['revision']) - Number(one['revision']));
  }

  #startOf(key: string, from: StoreRevision): StoreRevision | undefined {
    const newest = this.#keys.newest(key)?.revision;
    if (newest === undefined || newest <= from) return newest;
    if (this.#isOfKey.get(from, key) !== undefined) return from;
    const found = this.#upTo.get({ start: newest, from });
    return found === undefined ? undefined : Number(found['revision']);
  }

  /** The revision of the write with this id among the last `HISTORY_PER_KEY` changes of `key`. */
  revisionOf(key: string, id: string): StoreRevision | undefined {
    const start = this.#keys.newest(key)?.revision;
    if (start === undefined) return undefined;
    const row = this.#byWriteId.get({ start, limit: HISTORY_PER_KEY, id });
    return row === undefined ? undefined : Number(row['revision']);
  }

  /** Removes the key's changes beyond its last `HISTORY_PER_KEY`. */
  trim(key: string): void {
    const newest = this.#keys.newest(key);
    if (newest === undefined) return;
    const gone = this.#outlived.run({ start: newest.revision, limit: newest.kept }).changes;
    this.#keys.forget(key, Number(gone));
  }

  /**
   * The oldest change that is one of the key's last `HISTORY_PER_KEY`; undefined: no change of the
   * key is older than those.
   */
  oldestLasting(key: string): StoreRevision | undefined {
    const newest = this.#keys.newest(key);
    if (newest === undefined || newest.kept <= HISTORY_PER_KEY) return undefined;
    const found = this.#lasting.get({ start: newest.revision, limit: HISTORY_PER_KEY });
    return found === undefined ? undefined : Number(found['revision']);
  }

  /** Removes one change of the key. */
  remove(key: string, revision: StoreRevision): void {
    this.#removeOne.run(revision);
    this.#keys.forget(key, 1);
  }
}
