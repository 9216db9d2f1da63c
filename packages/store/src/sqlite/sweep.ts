/**
 * Removal by age, a bounded number of rows at a time between the writes, so that no caller waits
 * for it.
 *
 * A1 One step looks at `SWEEP_ROWS_MAX` rows, and steps are `SWEEP_PAUSE_MS` apart.
 * A2 The last changes of a key stay at any age (`HISTORY_PER_KEY`).
 * A3 A round goes through the changes from the oldest and ends at the first that is young enough.
 *
 * Must not: run by itself. A store without writes does not grow either.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Retention, StoreRevision } from '../contract.ts';
import type { SqliteEntries } from './entries.ts';
import type { KeyPast } from './key-past.ts';

export const SWEEP_ROWS_MAX = 256;
export const SWEEP_PAUSE_MS = 1_000;
/** From the end of one round to the start of the next. */
const ROUND_PAUSE_MS = 600_000;

export class Sweeper {
  readonly #retention: Retention;
  readonly #entries: SqliteEntries;
  readonly #past: KeyPast;
  readonly #oldest: StatementSync;
  #position: StoreRevision = 0;
  #nextMs = 0;

  constructor(
    database: DatabaseSync,
    { entries, past }: { readonly entries: SqliteEntries; readonly past: KeyPast },
    retention: Retention,
  ) {
    this.#retention = retention;
    this.#entries = entries;
    this.#past = past;
    this.#oldest = database.prepare(
      `SELECT revision, key, time_ms FROM changes WHERE revision > ? ORDER BY revision
       LIMIT ${SWEEP_ROWS_MAX}`,
    );
  }

  /** Whether it is time for a step. A clock that was set back does not stop it for good. */
  isDue(nowMs: number): boolean {
    return nowMs >= this.#nextMs || nowMs < this.#nextMs - ROUND_PAUSE_MS;
  }

  /** One step (A1). Only inside a transaction. */
  step(nowMs: number): void {
    const goes = this.#entries.trim(nowMs - this.#retention.logAgeMs, SWEEP_ROWS_MAX);
    const ended = this.#stepThroughChanges(nowMs - this.#retention.historyAgeMs);
    const isIdle = ended && goes < SWEEP_ROWS_MAX;
    this.#nextMs = nowMs + (isIdle ? ROUND_PAUSE_MS : SWEEP_PAUSE_MS);
  }

  /** Whether the round has ended with it. */
  #stepThroughChanges(beforeMs: number): boolean {
    const rows = this.#oldest.all(this.#position);
    /** For each key, the oldest change that stays by number: looked up once. */
    const lasting = new Map<string, StoreRevision>();
    for (const { revision, key: text, time_ms: atMs } of rows) {
      if (Number(atMs) >= beforeMs) {
        this.#position = 0;
        return true;
      }
      const key = String(text);
      const first = lasting.get(key) ?? this.#past.oldestLasting(key) ?? 0;
      lasting.set(key, first);
      if (Number(revision) < first) this.#past.remove(key, Number(revision));
      this.#position = Number(revision);
    }
    if (rows.length === SWEEP_ROWS_MAX) return false;
    this.#position = 0;
    return true;
  }
}
