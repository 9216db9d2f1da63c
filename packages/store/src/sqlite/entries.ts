/** The statements of the log's table; synchronous, and nothing outside a transaction writes. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { LogEntry, LogPage } from '../entry-log.ts';

/** A row of `entries`; an alias, because only aliases are assignable from node:sqlite's rows. */
type Row = {
  readonly position: number;
  readonly id: string;
  readonly time_ms: number;
  readonly value: Uint8Array;
};

export class SqliteEntries {
  readonly #insert: StatementSync;
  readonly #byId: StatementSync;
  readonly #back: StatementSync;
  readonly #trim: StatementSync;

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare(
      'INSERT INTO entries (id, time_ms, value) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING',
    );
    this.#byId = database.prepare('SELECT position FROM entries WHERE id = ?');
    this.#back = database.prepare(
      `SELECT position, id, time_ms, value FROM entries WHERE position < :before
       ORDER BY position DESC LIMIT :limit`,
    );
    this.#trim = database.prepare(
      `DELETE FROM entries WHERE position IN
       (SELECT position FROM entries WHERE position > 0 ORDER BY position LIMIT :limit)
       AND time_ms < :before`,
    );
  }

  /** The position of the entry, which may be there already. Only inside a transaction. */
  add(id: string, value: Uint8Array, nowMs: number): number {
    const { changes, lastInsertRowid } = this.#insert.run(id, nowMs, value);
    return Number(changes === 0 ? this.#byId.get(id)?.['position'] : lastInsertRowid);
  }

  back(limit: number, before = Number.MAX_SAFE_INTEGER): LogPage {
    const rows = this.#back.all({ before, limit: limit + 1 }) as Row[];
    const entries = rows
      .slice(0, limit)
      .map(({ position, id, time_ms: atMs, value }): LogEntry => ({ position, id, atMs, value }));
    return { entries, more: rows.length > limit };
  }

  /** Removes the oldest entries made before then, at most `limit`; answers how many went. */
  trim(beforeMs: number, limit: number): number {
    return Number(this.#trim.run({ before: beforeMs, limit }).changes);
  }
}
