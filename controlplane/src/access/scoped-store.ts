/**
 * The store as a caller with a scope sees it. Everything out of scope is absent, so that no handler
 * can return it, count it, or name it in a page token.
 *
 * Invariants:
 * 1. A hidden record is as absent as one that never existed, for every kind of read.
 * 2. A watch reports a record as deleted when the record is hidden, and only if it was visible.
 * 3. The history of a record shows only the changes that were visible when they were made.
 *
 * Must not: be given to a writer; checks of a change have to see everything.
 */
import { type Clock, pause } from '@rackwright/platform';
import type {
  Change,
  KeyHistory,
  Listing,
  ListPage,
  StateStore,
  StoreRevision,
  WatchEvent,
} from '@rackwright/store';
import type { HostLocations } from './host-locations.ts';
import type { Scope } from './principal.ts';
import { isVisible, type VisibleHosts, visibleHosts } from './visibility.ts';

/** The most keys whose visibility one watch remembers. */
const rememberedMax = 65_536;

/**
 * The part of the store that this scope shows. With `collections`, all others are unrestricted.
 */
export function scopedStore(inner: StateStore, scope: Scope, options: ScopeOptions): StateStore {
  return new ScopedStore(inner, scope, options);
}

/** How far a scope shows. */
export interface ScopeOptions {
  readonly collections?: readonly string[];
  readonly locations: HostLocations;
  /** For breaks in which other calls run. */
  readonly clock: Pick<Clock, 'after'>;
}

/**
 * The changes of these collections alone, in one order. Records of other collections are not
 * checked, so they cost a watcher nothing.
 */
export async function* watchCollections(
  store: StateStore,
  from: StoreRevision,
  collections: readonly string[],
  signal?: AbortSignal,
): AsyncGenerator<WatchEvent, void, undefined> {
  if (store instanceof ScopedStore) {
    yield* store.watchCollections(from, collections, signal);
    return;
  }
  for await (const event of store.watch(from, '', signal)) {
    if (event.kind === 'compacted' || isOf(collections, event.key)) yield event;
  }
}

function isOf(collections: readonly string[], key: string): boolean {
  return collections.includes(key.split('.')[0] ?? '');
}

class ScopedStore implements StateStore {
  readonly #inner: StateStore;
  readonly #scope: Scope;
  readonly #only: readonly string[] | undefined;
  readonly #locations: HostLocations;
  readonly #clock: Pick<Clock, 'after'>;

  constructor(inner: StateStore, scope: Scope, { collections, locations, clock }: ScopeOptions) {
    this.#inner = inner;
    this.#scope = scope;
    this.#only = collections;
    this.#locations = locations;
    this.#clock = clock;
  }

  get driver() {
    return this.#inner.driver;
  }

  get isShared() {
    return this.#inner.isShared;
  }

  get incarnation() {
    return this.#inner.incarnation;
  }

  get survivesPowerLoss() {
    return this.#inner.survivesPowerLoss;
  }

  get log() {
    return this.#inner.log;
  }

  async get(key: string) {
    const found = await this.#inner.get(key);
    if (found.kind === 'absent' || (await this.#sees(found, this.#hosts()))) return found;
    return { kind: 'absent', key } as const;
  }

  async list(prefix: string, page?: ListPage): Promise<Listing> {
    const hosts = this.#hosts();
    if (page === undefined) return this.#listVisible(prefix, undefined, hosts);
    const first = await this.#listVisible(prefix, page, hosts);
    let { entries, lastKey } = first;
    while (entries.length < page.limit && lastKey !== undefined) {
      // A store in this process answers at once: hidden records would hold up every other call.
      await pause(this.#clock, 0);
      const next = await this.#listVisible(prefix, { ...page, after: lastKey }, hosts);
      entries = [...entries, ...next.entries].slice(0, page.limit);
      lastKey = next.lastKey;
    }
    return { entries, before: first.before };
  }

  /** The entries of one page that are visible, and the key after which the next page begins. */
  async #listVisible(prefix: string, page: ListPage | undefined, hosts: VisibleHosts) {
    const { entries, before } = await this.#inner.list(prefix, page);
    const seen = await Promise.all(entries.map((entry) => this.#sees(entry, hosts)));
    const isLast = page === undefined || entries.length < page.limit;
    const lastKey = isLast ? undefined : entries.at(-1)?.key;
    return { entries: entries.filter((_, index) => seen[index]), before, lastKey };
  }

  async history(key: string) {
    const changes = await this.#inner.history(key);
    return (await this.#visibleThen(changes.toReversed(), undefined)).toReversed();
  }

  async historyBackwards(key: string, limit: number, from?: StoreRevision): Promise<KeyHistory> {
    const past = await this.#inner.historyBackwards(key, limit, from);
    const { before } = past;
    const last = past.changes.at(-1);
    const older =
      before.kind === 'more' && last?.kind === 'delete'
        ? (await this.#inner.historyBackwards(key, 1, before.from)).changes[0]
        : undefined;
    return { changes: await this.#visibleThen(past.changes, older), before };
  }

  watch(from: StoreRevision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    return this.#asSeen(this.#inner.watch(from, prefix, signal));
  }

  /** See the function of that name. */
  watchCollections(
    from: StoreRevision,
    collections: readonly string[],
    signal?: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    return this.#asSeen(watchCollections(this.#inner, from, collections, signal));
  }

  async *#asSeen(events: AsyncIterable<WatchEvent>): AsyncIterable<WatchEvent> {
    const seen = new Map<string, boolean>();
    for await (const event of events) {
      if (event.kind === 'compacted') {
        yield event;
        continue;
      }
      const shown = await this.#changeInScope(event, seen);
      if (shown !== undefined) yield shown;
    }
  }

  put(...given: Parameters<StateStore['put']>) {
    return this.#inner.put(...given);
  }

  delete(...given: Parameters<StateStore['delete']>) {
    return this.#inner.delete(...given);
  }

  latestRevision() {
    return this.#inner.latestRevision();
  }

  presentRevision() {
    return this.#inner.presentRevision();
  }

  close() {
    return this.#inner.close();
  }

  #hosts(): VisibleHosts {
    return visibleHosts(this.#inner, this.#scope, this.#locations);
  }

  async #sees(judged: { key: string; value: Uint8Array }, hosts: VisibleHosts): Promise<boolean> {
    const collection = judged.key.split('.')[0] ?? '';
    if (this.#only !== undefined && !this.#only.includes(collection)) return true;
    return isVisible(this.#scope, judged, hosts);
  }

  /** Invariant 2. */
  async #changeInScope(change: Change, seen: Map<string, boolean>): Promise<Change | undefined> {
    const { key, revision, writeId } = change;
    if (!(await this.#isOfSeenHost(key, seen))) return undefined;
    const isSeen = change.kind === 'put' && (await this.#sees(change, this.#hosts()));
    const wasSeen = isSeen || (seen.get(key) ?? (await this.#wasSeen(key, revision)));
    remember(seen, key, isSeen);
    if (isSeen) return change;
    return wasSeen ? { kind: 'delete', key, revision, writeId } : undefined;
  }

  /** Facts are shown only with their host: facts of a hidden host are not shown. */
  async #isOfSeenHost(key: string, seen: Map<string, boolean>): Promise<boolean> {
    const [collection, hostId = ''] = key.split('.');
    if (collection !== 'facts' || this.#only?.includes('hosts') === false) return true;
    // The state that this watch last reported of the host goes first; a read may be newer than
    // that.
    const known = seen.get(`hosts.${hostId}`) ?? seen.get(key);
    if (known !== undefined) return known;
    const isSeen = (await this.#hosts().get(hostId)) !== undefined;
    remember(seen, key, isSeen);
    return isSeen;
  }

  /** Whether the previous version was visible. */
  async #wasSeen(key: string, revision: StoreRevision): Promise<boolean> {
    const earlier = (await this.#inner.history(key)).findLast(
      (change) => change.revision < revision,
    );
    return earlier?.kind === 'put' && (await this.#sees(earlier, this.#hosts()));
  }

  /** Invariant 3; changes newest first. A deletion is judged by the value that it deleted. */
  async #visibleThen(changes: readonly Change[], older: Change | undefined): Promise<Change[]> {
    const hosts = this.#hosts();
    const kept: Change[] = [];
    for (const [index, change] of changes.entries()) {
      const shown = change.kind === 'put' ? change : (changes[index + 1] ?? older);
      if (shown?.kind === 'put' && (await this.#sees(shown, hosts))) kept.push(change);
    }
    return kept;
  }
}

function remember(seen: Map<string, boolean>, key: string, isSeen: boolean): void {
  if (seen.size >= rememberedMax) seen.clear();
  seen.set(key, isSeen);
}
