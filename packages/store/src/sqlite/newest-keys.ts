/**
 * Which change of each key is its newest: the table `newest`, and in memory the part that the table
 * lacks so far. Keys lie all over the table, so that each single write would change a page of its
 * own. Thousands of keys that are written in their order share many pages.
 *
 * Invariants:
 * 1. The table is complete up to the revision in `indexed`; the changes hold the rest, and it is
 *    read from them at opening. So nothing is lost with the memory.
 * 2. Bounded: once a number of keys wait, or of their changes, they are written with the following
 *    changes, two for each.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StoreRevision } from '../contract.ts';
import { WaitingKeys } from './waiting-keys.ts';

/** How much may wait before it begins to be written. */
export interface WaitingLimits {
  readonly keysMax: number;
  /** Read at opening, and not trimmed before. */
  readonly changesMax: number;
}

const usualLimits: WaitingLimits = { keysMax: 8_192, changesMax: 16_384 };
/** A key with so many changes that wait is written at once, so that it can be trimmed. */
const CHANGES_OF_KEY_MAX = 64;
/** Keys written for each change, and at once: neighbours share a page. */
const WRITTEN_PER_CHANGE = 2;
const WRITTEN_AT_ONCE = 128;

/** The known state of a key. */
export interface NewestChange {
  readonly revision: StoreRevision;
  /** The number of changes of the key. */
  readonly kept: number;
}

export class NewestKeys {
  readonly #limits: WaitingLimits;
  readonly #insert: StatementSync;
  readonly #row: StatementSync;
  readonly #indexed: StatementSync;
  readonly #setIndexed: StatementSync;
  readonly #since: StatementSync;
  readonly #forget: StatementSync;
  #waiting = new WaitingKeys();
  /** Those that are being written, in the order of keys; the others are newer. */
  #leaving = new WaitingKeys();
  /** The table's revision once those are written. */
  #leavingUpTo: StoreRevision = 0;
  /** Keys that have more waiting changes than one may. */
  readonly #busy = new Set<string>();
  #newestRevision: StoreRevision = 0;
  #changesWaiting = 0;
  /** Since keys were written last. */
  #changes = 0;
  /** The file knows more than the memory. */
  #isStale = true;

  constructor(database: DatabaseSync, limits = usualLimits) {
    this.#limits = limits;
    this.#insert = database.prepare(
      `INSERT INTO newest (key, revision, kept) VALUES (:key, :revision, :added)
       ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, kept = kept + :added
       WHERE excluded.revision > newest.revision RETURNING kept`,
    );
    this.#row = database.prepare('SELECT revision, kept FROM newest WHERE key = ?');
    this.#indexed = database.prepare('SELECT revision FROM indexed WHERE only_row = 1');
    this.#setIndexed = database.prepare('UPDATE indexed SET revision = ? WHERE only_row = 1');
    this.#since = database.prepare(
      'SELECT revision, key FROM changes WHERE revision > ? ORDER BY revision',
    );
    this.#forget = database.prepare('UPDATE newest SET kept = kept - :gone WHERE key = :key');
  }

  /** A transaction was rolled back. */
  rolledBack(): void {
    this.#isStale = true;
  }

  /** Reads from the file the part that the table lacks. */
  #read(): void {
    if (!this.#isStale) return;
    this.#waiting.clear();
    this.#leaving.clear();
    this.#busy.clear();
    this.#changes = 0;
    this.#changesWaiting = 0;
    const indexed = Number(this.#indexed.get()?.['revision'] ?? 0);
    this.#newestRevision = indexed;
    for (const { revision, key } of this.#since.iterate(indexed)) {
      this.#note(String(key), Number(revision));
    }
    this.#isStale = false;
  }

  /** A change is being made. Only inside a transaction. */
  add(key: string, revision: StoreRevision): void {
    this.#read();
    this.#changes += 1;
    this.#note(key, revision);
  }

  #note(key: string, revision: StoreRevision): void {
    const added = (this.#waiting.get(key)?.added ?? 0) + 1;
    this.#waiting.set(key, { revision, added });
    if (added >= CHANGES_OF_KEY_MAX) this.#busy.add(key);
    this.#newestRevision = revision;
    this.#changesWaiting += 1;
  }

  /** The newest change of a key that the table may not name yet. */
  waitingRevision(key: string): StoreRevision | undefined {
    this.#read();
    return (this.#waiting.get(key) ?? this.#leaving.get(key))?.revision;
  }

  newest(key: string): NewestChange | undefined {
    this.#read();
    const waiting = [this.#leaving.get(key), this.#waiting.get(key)];
    const row = this.#row.get(key);
    let revision = Number(row?.['revision'] ?? 0);
    let kept = Number(row?.['kept'] ?? 0);
    for (const each of waiting) {
      if (each === undefined || each.revision <= revision) continue;
      revision = each.revision;
      kept += each.added;
    }
    return revision === 0 ? undefined : { revision, kept };
  }

  /** Keys between two that wait, in order. */
  between(after: string, end: string): string[] {
    this.#read();
    const found = [this.#waiting, this.#leaving].flatMap((keys) => keys.between(after, end));
    return [...new Set(found)].sort();
  }

  /** So many changes of the key are gone. Only inside a transaction. */
  forget(key: string, gone: number): void {
    this.#forget.run({ gone, key });
  }

  /**
   * Writes some of the waiting keys (2), and reports the number of changes of each. Only inside a
   * transaction.
   */
  write(report: (key: string, kept: number) => void): void {
    this.#read();
    for (const key of this.#busy) {
      for (const keys of [this.#leaving, this.#waiting]) this.#writeOne(keys, key, report);
    }
    this.#busy.clear();
    let left = WRITTEN_PER_CHANGE * this.#changes;
    if (left < WRITTEN_AT_ONCE) return;
    this.#changes = 0;
    while (this.#leaving.size > 0 || this.#beginToLeave()) {
      for (const key of this.#leaving.keys()) {
        if (left === 0) return;
        left -= 1;
        this.#writeOne(this.#leaving, key, report);
      }
      this.#setIndexed.run(this.#leavingUpTo);
    }
  }

  #writeOne(keys: WaitingKeys, key: string, report: (key: string, kept: number) => void): void {
    const waiting = keys.get(key);
    if (waiting === undefined) return;
    keys.delete(key);
    const row = this.#insert.get({ key, ...waiting });
    if (row !== undefined) report(key, Number(row['kept']));
  }

  /** Whether it is time for another lot. */
  #beginToLeave(): boolean {
    const { keysMax, changesMax } = this.#limits;
    if (this.#waiting.size < keysMax && this.#changesWaiting < changesMax) return false;
    this.#leaving = this.#waiting.inOrder();
    this.#leavingUpTo = this.#newestRevision;
    this.#waiting = new WaitingKeys();
    this.#changesWaiting = 0;
    return true;
  }
}
