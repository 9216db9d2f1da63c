/** A whole collection, a page at a time: no caller waits for it, and it need not fit in memory. */
import { type Clock, pause } from '@rackwright/platform';
import type { Entry, Listing, ListPage } from '@rackwright/store';
import type { ReadableStore } from './decoded.ts';
import { orUnavailable } from './record.ts';

/** Entries read at once: a few milliseconds of work. */
const pageEntries = 250;
/** Pause between two pages, so that calls of people and agents go first. */
const pauseMs = 10;

export interface Listings {
  /** After this key; unset: from the first. */
  readonly after?: string;
  /** Entries of each page. */
  readonly limit: number;
  /** Entries of the first page; unset: the same limit. */
  readonly firstLimit?: number;
  /** Awaited before each page but the first. */
  readonly between?: () => Promise<void>;
}

/** One page after the other, until one is not full. Rejects as `list` does. */
export async function* listingsOf(
  list: (page: Required<ListPage>) => Promise<Listing>,
  { after: first = '', limit, firstLimit = limit, between }: Listings,
): AsyncGenerator<Listing, void, undefined> {
  for (let [after, size] = [first, firstLimit]; ; size = limit) {
    const page = await list({ after, limit: size });
    yield page;
    const last = page.entries.at(-1);
    if (last === undefined || page.entries.length < size) return;
    after = last.key;
    await between?.();
  }
}

/** Whether `key` has exactly one segment more than `prefix`. */
export function isDirectlyBelow(prefix: string, key: string): boolean {
  return key.startsWith(`${prefix}.`) && !key.includes('.', prefix.length + 1);
}

/**
 * All live entries under `prefix` in the order of their keys, a page at a time. Not a snapshot:
 * concurrent writes may or may not appear. Throws `unavailable`.
 */
export async function* pagesOf(
  store: ReadableStore,
  clock: Pick<Clock, 'after'>,
  prefix: string,
): AsyncGenerator<readonly Entry[], void, undefined> {
  const list = (page: ListPage) => orUnavailable(store.list(prefix, page));
  const between = () => pause(clock, pauseMs);
  for await (const { entries } of listingsOf(list, { limit: pageEntries, between })) yield entries;
}

/** As `pagesOf`, but the entries of one group at a time: those whose keys have the same segment. */
export async function* groupsOf(
  store: ReadableStore,
  clock: Pick<Clock, 'after'>,
  prefix: string,
  segment: number,
): AsyncGenerator<{ readonly id: string; readonly entries: readonly Entry[] }, void, undefined> {
  let id = '';
  let group: Entry[] = [];
  for await (const page of pagesOf(store, clock, prefix)) {
    for (const entry of page) {
      const next = entry.key.split('.')[segment] ?? '';
      if (next !== id && group.length > 0) {
        yield { id, entries: group };
        group = [];
      }
      id = next;
      group.push(entry);
    }
  }
  if (group.length > 0) yield { id, entries: group };
}
