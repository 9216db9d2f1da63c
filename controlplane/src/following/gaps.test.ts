/** F1 as a property: each follower ends with the state of the store, whatever breaks in between. */
import { quietLog as log } from '@rackwright/platform/testing';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { type Listing, openMemoryStore, type StateStore, type WatchEvent } from '@rackwright/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Follower, StoreFollower } from './following.ts';

const retryDelayMs = 1_000;
const quiet = () => undefined;
/** Longer than the delay of the watch. */
const slowListingMs = 10;
const keys = ['hosts.a', 'hosts.b', 'hosts.c'];

type Action =
  | { readonly kind: 'put' | 'delete'; readonly key: string }
  | { readonly kind: 'break' | 'join' }
  | { readonly kind: 'pass'; readonly ms: number };

/** What goes wrong with one listing, or is written before or after it. */
type Trouble = 'none' | 'fails' | 'writtenBefore' | 'writtenBehind' | 'slow' | 'breaks';

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('put' as const, 'delete' as const),
    key: fc.constantFrom(...keys),
  }),
  fc.record({ kind: fc.constantFrom('break' as const, 'join' as const) }),
  fc.record({
    kind: fc.constant('pass' as const),
    ms: fc.constantFrom(0, 1, retryDelayMs, 2 * retryDelayMs),
  }),
);
const trouble: fc.Arbitrary<Trouble> = fc.constantFrom(
  'none',
  'fails',
  'writtenBefore',
  'writtenBehind',
  'slow',
  'breaks',
);

/** A store with trouble, a writer, and followers. */
class Site {
  readonly heap = new EventHeap();
  readonly views: Map<string, number>[] = [];
  readonly #store: StateStore;
  readonly #troubles: Trouble[];
  readonly #following: StoreFollower;
  readonly #broken = new Set<() => void>();

  constructor(store: StateStore, troubles: readonly Trouble[]) {
    this.#store = store;
    this.#troubles = [...troubles];
    const { clock } = new SimProcess('p', this.heap, 0, () => false);
    this.#following = new StoreFollower({ store: this.#troubled(), clock, log, retryDelayMs });
  }

  async act(one: Action): Promise<void> {
    if (one.kind === 'put' || one.kind === 'delete') await this.#write(one);
    if (one.kind === 'break') this.#breakWatches();
    if (one.kind === 'join') this.#join();
    await this.pass(one.kind === 'pass' ? one.ms : 0);
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.heap.nowMs + ms;
    this.heap.after(ms, quiet);
    await this.heap.run(untilMs, () => false);
  }

  async revisions(): Promise<Map<string, number>> {
    const { entries } = await this.#store.list('hosts');
    return new Map(entries.map(({ key, revision }) => [key, revision]));
  }

  stop(): void {
    this.#following.stop();
  }

  #join(): void {
    const view = new Map<string, number>();
    const follower: Follower = {
      listed: ({ entries }) => {
        view.clear();
        for (const { key, revision } of entries) view.set(key, revision);
      },
      changed: ({ kind, key, revision }) => {
        if (kind === 'put') view.set(key, revision);
        else view.delete(key);
      },
    };
    const joined = this.#following.follow('hosts', follower, new AbortController().signal);
    // A failed listing follows nothing.
    joined.then(() => this.views.push(view), quiet);
  }

  async #write({ kind, key }: { readonly kind: 'put' | 'delete'; readonly key: string }) {
    const found = await this.#store.get(key);
    const expected = found.kind === 'found' ? found.revision : 'absent';
    if (kind === 'put') await this.#store.put(key, new Uint8Array([1]), expected);
    else if (expected !== 'absent') await this.#store.delete(key, expected);
  }

  #breakWatches(): void {
    for (const breakOff of this.#broken) breakOff();
    this.#broken.clear();
  }

  #troubled(): StateStore {
    const target = Object.create(this.#store) as StateStore;
    target.latestRevision = () => this.#store.latestRevision();
    target.list = (prefix) => this.#list(prefix);
    target.watch = (from, prefix, signal) => {
      const { promise, reject } = Promise.withResolvers<never>();
      promise.catch(quiet);
      this.#broken.add(() => reject(new Error('the connection was lost')));
      return untilBroken(this.#store.watch(from, prefix, signal), promise);
    };
    return target;
  }

  async #list(prefix: string): Promise<Listing> {
    const wrong = this.#troubles.shift() ?? 'none';
    if (wrong === 'fails') throw new Error('the store is away');
    if (wrong === 'writtenBefore') await this.#write({ kind: 'put', key: 'hosts.b' });
    const listing = await this.#store.list(prefix);
    if (wrong === 'writtenBehind') await this.#write({ kind: 'put', key: 'hosts.c' });
    if (wrong === 'slow') {
      await this.#write({ kind: 'put', key: 'hosts.a' });
      await new Promise<void>((resolve) => this.heap.after(slowListingMs, resolve));
    }
    if (wrong === 'breaks') this.#breakWatches();
    return listing;
  }
}

async function* untilBroken(events: AsyncIterable<WatchEvent>, broken: Promise<never>) {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([iterator.next(), broken]);
    if (next.done === true) return;
    yield next.value;
  }
}

test('each follower ends with what the store has, whatever broke meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { maxLength: 20 }),
      fc.array(trouble, { maxLength: 8 }),
      async (actions, troubles) => {
        const store = await openMemoryStore({ random: seededRandom(1) });
        const site = new Site(store, troubles);
        await site.act({ kind: 'join' });
        for (const one of actions) await site.act(one);
        await site.pass(20 * retryDelayMs);
        const stands = await site.revisions();
        for (const view of site.views) expect(view).toEqual(stands);
        site.stop();
      },
    ),
    { numRuns: 300 },
  );
});
