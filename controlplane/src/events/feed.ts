/**
 * The events of everything that changes, by following the store. A writer of records knows nothing
 * of events, so a crash loses none.
 *
 * Invariants:
 * 1. After a position, every change is reported at least once, and the changes of one record in
 *    order.
 * 2. A change that cannot be reported leaves an event `gap` for the record, or for the whole
 *    collection.
 * 3. The same change has the same events, with the same ids.
 * 4. Only changes cost anything. Where the store no longer has every change, the collection is read
 *    once, page by page, and the past of each record that has changed since.
 */
import { GapReason } from '@rackwright/messages';
import {
  type Change,
  type ListPage,
  PAST_CHANGES_MAX,
  type StateStore,
  type StoreRevision,
  type WatchEvent,
} from '@rackwright/store';
import { listingsOf, orUnavailable } from '../records/index.ts';
import {
  type Before,
  type EventCollection,
  eventCollections,
  eventsOf,
  gapOf,
  isCreateOnly,
  isEventSource,
  type TracedEvent,
} from './derive/derive.ts';
import { merged } from './merged.ts';
import { type Positions, revisionIn } from './positions.ts';

/** One change with all its events, which may be none. */
export interface FedChange {
  readonly collection: EventCollection;
  readonly events: readonly TracedEvent[];
  /**
   * Everything before it in its collection has been reported up to here; undefined: a later change
   * will say so.
   */
  readonly upTo: StoreRevision | undefined;
}

export type FeedStore = Pick<StateStore, 'incarnation' | 'list' | 'historyBackwards' | 'watch'>;

/** The most last values that one feed keeps for each collection, instead of reading them. */
const rememberedMax = 256;
/** Records read at once where the store no longer has every change. */
const pageRecords = 100;
/** The most changes of one record that are reported then; older ones make a gap. */
const bridgedChangesMax = 16 * PAST_CHANGES_MAX;

/** All changes after these positions, until `signal` aborts. Rejects as the store does. */
export async function* eventFeed(
  store: FeedStore,
  from: Positions,
  signal: AbortSignal,
): AsyncGenerator<FedChange, void, undefined> {
  // When the consumer leaves, or one collection cannot be followed, every watch ends.
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    yield* merged(
      eventCollections.map((collection) =>
        new CollectionFeed(store, collection, leaving.signal).after(revisionIn(from, collection)),
      ),
    );
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}

class CollectionFeed {
  readonly #store: FeedStore;
  readonly #collection: EventCollection;
  readonly #signal: AbortSignal;
  /** The last change of each key, oldest first; only from this feed's own changes. */
  readonly #last = new Map<string, Change>();

  constructor(store: FeedStore, collection: EventCollection, signal: AbortSignal) {
    this.#store = store;
    this.#collection = collection;
    this.#signal = signal;
  }

  async *after(start: StoreRevision): AsyncGenerator<FedChange, void, undefined> {
    let position = start;
    while (!this.#signal.aborted) {
      const watch: AsyncIterable<WatchEvent> = this.#store.watch(
        position,
        this.#collection,
        this.#signal,
      );
      let isWhole = true;
      for await (const change of watch) {
        if (change.kind === 'compacted') {
          isWhole = false;
          break;
        }
        // The store may repeat changes that were reported, followed by all later ones.
        if (change.revision <= position) continue;
        position = change.revision;
        yield this.#fed(await this.#eventsOf(change), position);
      }
      if (isWhole) return;
      position = yield* this.#bridge(position);
    }
  }

  #fed(events: readonly TracedEvent[], upTo: StoreRevision | undefined): FedChange {
    return { collection: this.#collection, events, upTo };
  }

  async #eventsOf(change: Change): Promise<readonly TracedEvent[]> {
    if (!isEventSource(this.#collection, change.key)) return [];
    const before = await this.#before(change);
    this.#remember(change);
    return eventsOf(this.#store.incarnation, this.#collection, change, before);
  }

  async #before(change: Change): Promise<Before> {
    if (isCreateOnly(this.#collection) && change.kind === 'put') return 'absent';
    const last = this.#last.get(change.key);
    if (last !== undefined && last.revision < change.revision) return beforeBy(last);
    const { changes, before } = await orUnavailable(
      this.#store.historyBackwards(change.key, 2, change.revision),
    );
    const earlier = changes.find(({ revision }) => revision < change.revision);
    if (earlier !== undefined) return beforeBy(earlier);
    return before.kind === 'gone' ? 'gone' : 'absent';
  }

  #remember(change: Change): void {
    this.#last.delete(change.key);
    this.#last.set(change.key, change);
    const [oldest] = this.#last.keys();
    if (this.#last.size > rememberedMax && oldest !== undefined) this.#last.delete(oldest);
  }

  /**
   * The store lacks changes after `position`: each existing record yields its stored changes.
   * Deleted records yield nothing; the gap of the collection stands for them. Returns the position
   * from which changes follow again.
   */
  async *#bridge(position: StoreRevision): AsyncGenerator<FedChange, StoreRevision, undefined> {
    this.#last.clear();
    const { incarnation } = this.#store;
    const read = (page: ListPage) => orUnavailable(this.#store.list(this.#collection, page));
    let before: StoreRevision | undefined;
    for await (const page of listingsOf(read, { limit: pageRecords })) {
      before ??= page.before;
      for (const { key, revision } of page.entries) {
        if (revision <= position || !isEventSource(this.#collection, key)) continue;
        for (const events of await this.#bridged(key, position)) yield this.#fed(events, undefined);
      }
    }
    const upTo = before ?? position;
    const change = { key: this.#collection, revision: upTo };
    yield this.#fed([gapOf(incarnation, change, GapReason.COMPACTED)], upTo);
    return upTo;
  }

  /** The events of the stored changes of a record after `position`, oldest first. */
  async #bridged(
    key: string,
    position: StoreRevision,
  ): Promise<readonly (readonly TracedEvent[])[]> {
    const { incarnation } = this.#store;
    const newestFirst: Change[] = [];
    let next: StoreRevision | undefined;
    let first: Before = 'gone';
    reading: while (newestFirst.length < bridgedChangesMax) {
      const { changes, before } = await orUnavailable(
        this.#store.historyBackwards(key, PAST_CHANGES_MAX, next),
      );
      for (const change of changes) {
        if (change.revision <= position) {
          first = beforeBy(change);
          break reading;
        }
        newestFirst.push(change);
      }
      if (before.kind !== 'more') {
        first = before.kind === 'nothing' ? 'absent' : 'gone';
        break;
      }
      next = before.from;
    }
    if (isCreateOnly(this.#collection)) first = 'absent';
    return newestFirst.toReversed().map((change, index, changes) => {
      const earlier = changes[index - 1];
      const before = earlier === undefined ? first : beforeBy(earlier);
      return eventsOf(incarnation, this.#collection, change, before);
    });
  }
}

function beforeBy(change: Change): Before {
  return change.kind === 'put' ? change : 'absent';
}
