/**
 * Hosts by the traits of their last inventory, which stands in their facts.
 *
 * Invariants:
 * 1. Once `read` has resolved, each host is found by exactly the traits of its facts as of some
 *    revision, not before the one that this was made at, and of every later change that was noted.
 * 2. Of a host, what is older than what is known changes nothing.
 * 3. Facts that cannot be decoded have no traits. They stop nothing.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type HostId, unavailable, store as wire } from '@rackwright/messages';
import { type Clock, pause } from '@rackwright/platform';
import type { Change, Entry, Revision, StateStore } from '@rackwright/store';
import { idOfKey, isDirectlyBelow, listingsOf } from '../records/index.ts';
import { IdsByValue } from './ids-by-value.ts';
import { traitKeys, traitsOf } from './traits.ts';

export const factsPrefix = 'facts';
/** Facts that are read at once: some milliseconds of work. */
const readEntries = 100;
/** Between two pages, so that what people and agents wait for goes first. */
const betweenMs = 2;

export interface FactTraitsDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  /** Pause before a store that is behind is read again. */
  readonly retryDelayMs: number;
}

interface Known {
  readonly revision: Revision;
  readonly keys: readonly string[];
}

export class FactTraits {
  readonly #deps: FactTraitsDependencies;
  readonly #since: Revision;
  readonly #signal: AbortSignal;
  readonly #ids = new IdsByValue();
  readonly #known = new Map<string, Known>();
  /** Revisions of deletions that a page may not have seen; undefined: all pages are read. */
  #gone: Map<string, Revision> | undefined = new Map();
  #reading: Promise<void> | undefined;

  /** From now on, every change after the revision `since` is noted. */
  constructor(deps: FactTraitsDependencies, since: Revision, signal: AbortSignal) {
    this.#deps = deps;
    this.#since = since;
    this.#signal = signal;
  }

  /** Resolves once the facts of all hosts are known. Rejects as the store does. */
  read(): Promise<void> {
    this.#reading ??= this.#read();
    return this.#reading;
  }

  /** Ids of the hosts whose facts have this trait, in order. */
  idsByTrait(key: string): Iterable<string> {
    return this.#ids.behind(key, '');
  }

  note(change: Change): void {
    const { key, revision } = change;
    if (change.kind === 'put') {
      this.#put(change);
      return;
    }
    const hostId = idOfKey(key);
    this.#gone?.set(hostId, revision);
    if ((this.#known.get(hostId)?.revision ?? revision) >= revision) return;
    this.#leave(hostId);
    this.#known.delete(hostId);
  }

  async #read(): Promise<void> {
    while (!(await this.#readPages())) {
      await this.#pause(this.#deps.retryDelayMs);
      if (this.#signal.aborted) throw unavailable('VIEW_BEHIND', 'This control plane is stopping.');
    }
    this.#gone = undefined;
  }

  /** False: the store has shown a state from before what is noted. */
  async #readPages(): Promise<boolean> {
    const { store } = this.#deps;
    const between = () => this.#pause(betweenMs);
    const pages = { limit: readEntries, between };
    for await (const page of listingsOf((each) => store.list(factsPrefix, each), pages)) {
      if (page.before < this.#since) return false;
      for (const entry of page.entries) {
        if (isDirectlyBelow(factsPrefix, entry.key)) this.#put(entry);
      }
    }
    return true;
  }

  /** (2) */
  #put(entry: Entry): void {
    const { key, revision } = entry;
    const hostId = idOfKey(key);
    const known = Math.max(this.#known.get(hostId)?.revision ?? 0, this.#gone?.get(hostId) ?? 0);
    if (known >= revision) return;
    const keys = keysOf(entry);
    this.#leave(hostId);
    for (const each of keys) this.#ids.add(each, hostId);
    this.#known.set(hostId, { revision, keys });
  }

  #leave(hostId: HostId): void {
    for (const each of this.#known.get(hostId)?.keys ?? []) this.#ids.delete(each, hostId);
  }

  #pause(delayMs: number): Promise<void> {
    return pause(this.#deps.clock, delayMs, this.#signal);
  }
}

/** (3) */
function keysOf({ value }: Entry): readonly string[] {
  try {
    const { inventory } = fromBinary(wire.HostFactsSchema, value);
    return inventory === undefined ? [] : traitKeys(traitsOf(inventory));
  } catch {
    return [];
  }
}
