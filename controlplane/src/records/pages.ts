/** A whole collection, a page at a time: nobody waits for it, and it need not fit in memory. */
import type { Clock } from '@rackwright/platform';
import type { Entry, Listing } from '@rackwright/store';
import type { ReadableStore } from './decoded.ts';
import { answered } from './record.ts';

/** Entries read at once: a few milliseconds of work. */
const pageEntries = 250;
/** Between two pages, so that what people and agents wait for goes first. */
const pauseMs = 10;

/**
 * All live entries under `prefix` in the order of their keys, a page at a time. Not a snapshot:
 * what is written meanwhile may be in it or not. Throws `unavailable`.
 */
export async function* pagesOf(
  store: ReadableStore,
  clock: Pick<Clock, 'after'>,
  prefix: string,
): AsyncGenerator<readonly Entry[], void, undefined> {
  for (let after = ''; ; ) {
    const page: Listing = await answered(store.list(prefix, { after, limit: pageEntries }));
    yield page.entries;
    const last = page.entries.at(-1);
    if (last === undefined || page.entries.length < pageEntries) return;
    after = last.key;
    await new Promise<void>((go) => clock.after(pauseMs, go));
  }
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
