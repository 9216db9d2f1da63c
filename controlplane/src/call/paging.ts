/** Pages of a list: bounded in number and in bytes. */
import { type Clock, pause } from '@rackwright/platform';
import { type Entry, LIST_PAGE_MAX, type ListPage, type StateStore } from '@rackwright/store';
import { isDirectlyBelow, listingsOf, orUnavailable } from '../records/index.ts';
import { formatPageToken, parseKeyToken } from './position.ts';

export const pageSizeDefault = 100;
export const pageSizeMax = 1_000;
/** Entries that one page reads. A page that has read so many ends early, perhaps empty. */
export const entriesReadMax = 1_000;
/** A page ends early when it exceeds this size; the transport's maximum is 4 MiB. */
export const pageBytesMax = 2 * 1024 * 1024;

/** The longest work without a break, milliseconds; then other calls run. */
export const sliceMs = 3;

/** `read`, with a break for other calls whenever it has run for `sliceMs`. */
export function inSlices<T, E = Entry>(
  clock: Pick<Clock, 'nowMs' | 'after'>,
  read: (entry: E) => Promise<T>,
): (entry: E) => Promise<T> {
  let beganMs = clock.nowMs();
  return async (entry) => {
    const readMs = clock.nowMs() - beganMs;
    // After the clock was set back, the elapsed time is unknown.
    if (readMs >= sliceMs || readMs < 0) {
      await pause(clock, 0);
      beganMs = clock.nowMs();
    }
    return await read(entry);
  };
}

export interface ListPageRequest {
  readonly pageSize?: number | undefined;
  readonly pageToken: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextPageToken: string;
}

/**
 * One page of the records directly below `prefix`, or of those that `isListed`, in the order of
 * their keys. When there are several prefixes, they are in ascending order and none is below
 * another. `read` makes an item of an entry, or leaves it out; `filter` identifies the filter in
 * page tokens. The size of an item is that of its stored record, unless it is sent as more. Reads
 * the returned records and those that `read` and `isListed` leave out on the way; `read` is called
 * for at most `entriesReadMax`.
 */
export async function listPage<T>(
  store: StateStore,
  prefix: string | readonly string[],
  request: ListPageRequest,
  filter: string,
  read: (entry: Entry) => T | undefined | Promise<T | undefined>,
  isListed?: (key: string) => boolean,
  bytesOf: (item: T) => number = () => 0,
): Promise<Page<T>> {
  async function* source(after: string, size: number): Entries {
    for (const below of typeof prefix === 'string' ? [prefix] : prefix) {
      for await (const entry of entriesBehind(store, below, after, size + 1)) {
        if (isListed?.(entry.key) ?? isDirectlyBelow(below, entry.key)) yield entry;
      }
    }
  }
  return await pageOf(store, source, request, filter, read, bytesOf);
}

type Entries = AsyncGenerator<Entry, void, undefined>;

/**
 * One page of what `source` yields after the key `after`, in the order of keys; `size` is the
 * largest page. Otherwise as `listPage`.
 */
export async function pageOf<T>(
  store: StateStore,
  source: (after: string, size: number) => Entries,
  request: ListPageRequest,
  filter: string,
  read: (entry: Entry) => T | undefined | Promise<T | undefined>,
  bytesOf: (item: T) => number = () => 0,
): Promise<Page<T>> {
  const size = pageSizeOf(request.pageSize);
  const after = parseKeyToken(store, filter, request.pageToken);
  const items: T[] = [];
  let bytes = 0;
  let lastKey = '';
  let entriesRead = 0;
  for await (const entry of source(after, size)) {
    if (entriesRead > entriesReadMax)
      return { items, nextPageToken: formatPageToken(store, filter, lastKey) };
    entriesRead += 1;
    const item = await read(entry);
    if (item === undefined) {
      lastKey = entry.key;
      continue;
    }
    bytes += Math.max(entry.value.byteLength, bytesOf(item));
    const full = items.length >= size || (items.length > 0 && bytes > pageBytesMax);
    if (full) return { items, nextPageToken: formatPageToken(store, filter, lastKey) };
    items.push(item);
    lastKey = entry.key;
  }
  return { items, nextPageToken: '' };
}

/** The entries of these keys that exist, in the same order. */
export async function* entriesOf(store: StateStore, keys: Iterable<string>): Entries {
  for (const key of keys) {
    const found = await orUnavailable(store.get(key));
    if (found.kind === 'found') yield found;
  }
}

/** The entries under `prefix` after the key `after`; the first read has `first` entries. */
async function* entriesBehind(
  store: StateStore,
  prefix: string,
  after: string,
  first: number,
): Entries {
  const list = (page: ListPage) => orUnavailable(store.list(prefix, page));
  const sizes = { firstLimit: Math.min(first, LIST_PAGE_MAX), limit: LIST_PAGE_MAX };
  for await (const { entries } of listingsOf(list, { after, ...sizes })) yield* entries;
}

/**
 * The page size to use (AIP-158): the default when the request has none, and never more than the
 * maximum. The wire type excludes negative sizes.
 */
export function pageSizeOf(pageSize: number | undefined): number {
  return Math.min(pageSize || pageSizeDefault, pageSizeMax);
}
