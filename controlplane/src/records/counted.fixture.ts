/**
 * A store that counts what is read and written through it, for tests of costs: values that it hands
 * over, their bytes, and writes that it is asked for. What watches bring is not counted: that is
 * what others have written.
 */
import type { StateStore } from '@rackwright/store';

export interface Cost {
  /** Values handed over, and questions whose answer was that there is none. */
  rows: number;
  bytes: number;
  written: number;
}

export interface Counted {
  readonly store: StateStore;
  /** So far; it goes on. */
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
  store.past = async (key, limit, from) => {
    const past = await inner.past(key, limit, from);
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
  store.close = () => inner.close();
  store.log = inner.log;
  return { store, cost };
}

/** What came to it since `before`. */
export function costSince(before: Cost, now: Cost): Cost {
  return {
    rows: now.rows - before.rows,
    bytes: now.bytes - before.bytes,
    written: now.written - before.written,
  };
}
