/**
 * The content of a memory store after its handles are gone: the changes, trimmed to the last
 * `HISTORY_PER_KEY` of each key or by age, and the log of entries. Synchronous throughout, so that
 * a simulation decides when what happens.
 */
import {
  asStoreIncarnation,
  type ExpectedRevision,
  HISTORY_PER_KEY,
  type StoreRevision,
  type WriteId,
} from '../contract.ts';
import type { LogEntry, LogPage } from '../entry-log.ts';
import { isUnder } from '../key.ts';
import { type ChangeLog, WakeUp } from '../pull.ts';
import { decideWrite, type StoredChange, type WriteDecision } from '../write.ts';

export interface DiskWrite {
  readonly key: string;
  /** Missing: delete. */
  readonly value?: Uint8Array;
  readonly expected: ExpectedRevision;
  readonly writeId: WriteId;
  readonly age?: Age;
}

/** The time of an addition, and the age limit of older entries. */
export interface Age {
  readonly nowMs: number;
  /** Changes of the key go at this age; undefined: once enough others follow. */
  readonly historyAgeMs?: number;
  readonly logAgeMs: number;
}

/** Entries that a log without a clock keeps. */
const LOG_ENTRIES_MAX = 10_000;

export class MemoryDisk implements ChangeLog {
  /** Empty until the first handle names it. */
  incarnation = asStoreIncarnation('');
  /** Wakes the watchers of every handle after each change. */
  readonly wakeUp = new WakeUp();
  #latest: StoreRevision = 0;
  #log: StoredChange[] = [];
  #trimmed = 0;
  readonly #byKey = new Map<string, StoredChange[]>();
  readonly #gone = new Set<StoreRevision>();
  #entries: LogEntry[] = [];
  #position = 0;

  latest(): StoreRevision {
    return this.#latest;
  }

  after(revision: StoreRevision, prefix: string, limit: number): readonly StoredChange[] {
    const found: StoredChange[] = [];
    for (let at = this.#firstAfter(revision); at < this.#log.length; at += 1) {
      const change = this.#log[at] as StoredChange;
      if (this.#gone.has(change.revision) || !isUnder(prefix, change.key)) continue;
      found.push(change);
      if (found.length === limit) break;
    }
    return found;
  }

  /** The kept changes of one key, oldest first. */
  changesOf(key: string): readonly StoredChange[] {
    return this.#byKey.get(key) ?? [];
  }

  /** The last change of every key under `prefix`, ordered by key. */
  lastChanges(prefix: string): readonly StoredChange[] {
    const found: StoredChange[] = [];
    for (const key of [...this.#byKey.keys()].filter((each) => isUnder(prefix, each)).sort()) {
      found.push(this.changesOf(key).at(-1) as StoredChange);
    }
    return found;
  }

  /** Decides and, if it may happen, makes one write. The answer to `write` bears its revision. */
  write(write: DiskWrite): Exclude<WriteDecision, { kind: 'write' }> {
    const kept = this.#byKey.get(write.key) ?? [];
    const earlier = kept.find((change) => change.writeId === write.writeId);
    if (earlier !== undefined) return { kind: 'landed', revision: earlier.revision };
    const decision = decideWrite(kept.at(-1), write.expected, write.writeId);
    if (decision.kind !== 'write') return decision;
    this.#latest += 1;
    const { key, writeId } = write;
    const at = write.age === undefined ? {} : { atMs: write.age.nowMs };
    const written = { key, writeId, revision: this.#latest, previous: decision.previous, ...at };
    const change: StoredChange =
      write.value === undefined
        ? { kind: 'delete', ...written }
        : { kind: 'put', ...written, value: Uint8Array.from(write.value) };
    this.#log.push(change);
    kept.push(change);
    this.#byKey.set(key, kept);
    this.trim(key, write.age);
    this.wakeUp.wakeAll();
    return { kind: 'landed', revision: this.#latest };
  }

  /** Drops the changes of a key that are neither among the last ones nor young enough. */
  trim(key: string, age: Age | undefined): void {
    const kept = this.#byKey.get(key) ?? [];
    const sinceMs = age?.historyAgeMs === undefined ? Infinity : age.nowMs - age.historyAgeMs;
    while (kept.length > HISTORY_PER_KEY && (kept[0]?.atMs ?? 0) < sinceMs) this.#trim(kept);
  }

  /** Adds an entry of the log, or finds the entry with this id. */
  append(id: string, value: Uint8Array, age: Age | undefined): number {
    this.trimEntries(age);
    const earlier = this.#entries.find((entry) => entry.id === id);
    if (earlier !== undefined) return earlier.position;
    this.#position += 1;
    const atMs = age?.nowMs ?? 0;
    this.#entries.push({ position: this.#position, id, value: Uint8Array.from(value), atMs });
    return this.#position;
  }

  trimEntries(age: Age | undefined): void {
    const sinceMs = age === undefined ? 0 : age.nowMs - age.logAgeMs;
    const stays = this.#entries.findIndex(({ atMs }) => atMs >= sinceMs);
    this.#entries.splice(0, stays < 0 ? this.#entries.length : stays);
    this.#entries.splice(0, this.#entries.length - LOG_ENTRIES_MAX);
  }

  entriesBack(limit: number, before = Number.MAX_SAFE_INTEGER): LogPage {
    const older = this.#entries.filter(({ position }) => position < before);
    const entries = older.slice(-limit).reverse();
    return { entries, more: older.length > entries.length };
  }

  /** A copy of the present content of this disk; nobody watches it yet. */
  copy(): MemoryDisk {
    const copy = new MemoryDisk();
    copy.incarnation = this.incarnation;
    copy.#latest = this.#latest;
    copy.#log = this.#log.filter((change) => !this.#gone.has(change.revision));
    for (const [key, kept] of this.#byKey) copy.#byKey.set(key, [...kept]);
    copy.#entries = [...this.#entries];
    copy.#position = this.#position;
    return copy;
  }

  #trim(kept: StoredChange[]): void {
    this.#gone.add((kept.shift() as StoredChange).revision);
    this.#trimmed += 1;
    if (this.#trimmed * 2 < this.#log.length) return;
    this.#log = this.#log.filter((change) => !this.#gone.has(change.revision));
    this.#gone.clear();
    this.#trimmed = 0;
  }

  #firstAfter(revision: StoreRevision): number {
    let low = 0;
    let high = this.#log.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#log[middle] as StoredChange).revision > revision) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
