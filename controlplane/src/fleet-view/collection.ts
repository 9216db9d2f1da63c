/**
 * The records under a prefix, each decoded once and indexed by keys, for readers that must not list
 * them.
 *
 * Invariants:
 * 1. Once `read` has resolved, each record is found by exactly its keys at some revision, not
 *    earlier than the one at construction, and at every later noted change.
 * 2. An older version of a record than the known one changes nothing.
 * 3. A record that cannot be decoded counts as absent. The log names it. It stops nothing.
 */
import { unavailable } from '@rackwright/messages';
import { type Clock, type Log, pause } from '@rackwright/platform';
import type { Change, Entry, StateStore, StoreRevision } from '@rackwright/store';
import { idOfKey, isDirectlyBelow, listingsOf } from '../records/index.ts';
import { IdsByValue } from './ids-by-value.ts';

/** Records that are read at once: some milliseconds of work. */
const readEntries = 100;
/** Pause between two pages, so that calls of people and agents go first. */
const betweenMs = 2;

/**
 * Which records, and what is kept of them. One object for each kind: the view keeps one collection
 * for each.
 */
export interface CollectionKind<T> {
  readonly prefix: string;
  /** The kept part of a record; undefined: nothing. May throw (3). */
  readonly keptOf: (entry: Entry) => T | undefined;
  /** The keys by which it is found. */
  readonly keysOf: (kept: T) => readonly string[];
}

export interface CollectionDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  /** Pause before another read of a store that lags. */
  readonly retryDelayMs: number;
}

/** Queries for records. */
export interface FoundRecords<T> {
  readonly size: number;
  get(id: string): T | undefined;
  /** Everything, in no order. */
  all(): Iterable<T>;
  /** Ids after `after` of the records with this key, in order. */
  idsBy(key: string, after?: string): Iterable<string>;
  countBy(key: string): number;
}

interface KnownRecord<T> {
  readonly revision: StoreRevision;
  readonly kept: T;
}

export class Collection<T> implements FoundRecords<T> {
  readonly #kind: CollectionKind<T>;
  readonly #deps: CollectionDependencies;
  readonly #since: StoreRevision;
  readonly #signal: AbortSignal;
  readonly #ids = new IdsByValue();
  readonly #known = new Map<string, KnownRecord<T>>();
  /** Revisions of deletions that a page may not have seen. */
  #gone: Map<string, StoreRevision> | undefined = new Map();
  #reading: Promise<void> | undefined;

  /** From now on, every change after the revision `since` is noted. */
  constructor(
    kind: CollectionKind<T>,
    deps: CollectionDependencies,
    since: StoreRevision,
    signal: AbortSignal,
  ) {
    this.#kind = kind;
    this.#deps = deps;
    this.#since = since;
    this.#signal = signal;
  }

  /** Resolves once all records are known. Rejects as the store does. */
  read(): Promise<void> {
    this.#reading ??= this.#read();
    return this.#reading;
  }

  get size(): number {
    return this.#known.size;
  }

  get(id: string): T | undefined {
    return this.#known.get(id)?.kept;
  }

  *all(): Generator<T, void, undefined> {
    for (const { kept } of this.#known.values()) yield kept;
  }

  idsBy(key: string, after = ''): Iterable<string> {
    return this.#ids.behind(key, after);
  }

  countBy(key: string): number {
    return this.#ids.sizeOf(key);
  }

  /** Changes of other prefixes are ignored. */
  note(change: Change): void {
    if (!isDirectlyBelow(this.#kind.prefix, change.key)) return;
    if (change.kind === 'put') this.#put(change);
    else this.#take(idOfKey(change.key), change.revision);
  }

  async #read(): Promise<void> {
    while (!(await this.#readPages())) {
      await this.#pause(this.#deps.retryDelayMs);
      if (this.#signal.aborted) throw unavailable('VIEW_BEHIND', 'This control plane is stopping.');
    }
    this.#gone = undefined;
  }

  /** False: the store has shown a state older than the noted changes. */
  async #readPages(): Promise<boolean> {
    const { store } = this.#deps;
    const { prefix } = this.#kind;
    const between = () => this.#pause(betweenMs);
    const pages = { limit: readEntries, between };
    for await (const page of listingsOf((each) => store.list(prefix, each), pages)) {
      if (page.before < this.#since) return false;
      for (const entry of page.entries) if (isDirectlyBelow(prefix, entry.key)) this.#put(entry);
    }
    return true;
  }

  /** (2) */
  #put(entry: Entry): void {
    const { key, revision } = entry;
    const id = idOfKey(key);
    const known = Math.max(this.#known.get(id)?.revision ?? 0, this.#gone?.get(id) ?? 0);
    if (known >= revision) return;
    const kept = this.#keptOf(entry);
    if (kept === undefined) {
      this.#take(id, revision);
      return;
    }
    this.#leave(id);
    for (const each of this.#kind.keysOf(kept)) this.#ids.add(each, id);
    this.#known.set(id, { revision, kept });
  }

  /** (3) */
  #keptOf(entry: Entry): T | undefined {
    try {
      return this.#kind.keptOf(entry);
    } catch (error) {
      this.#deps.log.warn(
        { record: entry.key },
        'a record cannot be decoded; it counts as absent',
        error,
      );
      return undefined;
    }
  }

  #take(id: string, revision: StoreRevision): void {
    this.#gone?.set(id, revision);
    if ((this.#known.get(id)?.revision ?? revision) >= revision) return;
    this.#leave(id);
    this.#known.delete(id);
  }

  #leave(id: string): void {
    const known = this.#known.get(id);
    if (known === undefined) return;
    for (const each of this.#kind.keysOf(known.kept)) this.#ids.delete(each, id);
  }

  #pause(delayMs: number): Promise<void> {
    return pause(this.#deps.clock, delayMs, this.#signal);
  }
}
