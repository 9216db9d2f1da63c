/**
 * A store that counts reads and writes through it, for tests of costs: returned values, their
 * bytes, and requested writes. Changes from watches are not counted: others have written them.
 */
import type { StateStore } from '@rackwright/store';

export interface Cost {
  /** Returned values, and reads without a result. */
  rows: number;
  bytes: number;
  written: number;
}

export interface Counted {
  readonly store: StateStore;
  /** The total so far; it keeps counting. */
  readonly cost: Cost;
}

export function countedStore(inner: StateStore): Counted {
  const cost: Cost = { rows: 0, bytes: 0, written: 0 };
  const read = (values: readonly object[]) => {
    cost.rows += values.length;
    for (const each of values) {
      if ('value' in each && each.value instanceof Uint8Array) cost.bytes += each.value.byteLength;
    }
  };
  const store = Object.create(inner) as { -readonly [name in keyof StateStore]: StateStore[name] };
  store.get = async (key) => {
    const found = await inner.get(key);
    read([found.kind === 'found' ? found : {}]);
    return found;
  };
  store.list = async (prefix, page) => {
    const listing = await inner.list(prefix, page);
    read(listing.entries);
    return listing;
  };
  store.history = async (key) => {
    const changes = await inner.history(key);
    read(changes);
    return changes;
  };
  store.historyBackwards = async (key, limit, from) => {
    const past = await inner.historyBackwards(key, limit, from);
    read(past.changes);
    return past;
  };
  store.put = (...given) => {
    cost.written += 1;
    return inner.put(...given);
  };
  store.delete = (...given) => {
    cost.written += 1;
    return inner.delete(...given);
  };
  store.watch = (...given) => inner.watch(...given);
  store.latestRevision = () => inner.latestRevision();
  store.presentRevision = () => inner.presentRevision();
  store.close = () => inner.close();
  store.log = inner.log;
  return { store, cost };
}

/** The cost since `before`. */
export function costSince(before: Cost, now: Cost): Cost {
  return {
    rows: now.rows - before.rows,
    bytes: now.bytes - before.bytes,
    written: now.written - before.written,
  };
}
