/** One watch for all followers, and no missed change. */
import { quietLog as log } from '@rackwright/platform/testing';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { type Listing, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { type Follower, StoreFollower } from './following.ts';
import { untilBroken } from './until-broken.fixture.ts';

const retryDelayMs = 1_000;
const bytes = (text: string) => new TextEncoder().encode(text);
const quiet = () => undefined;

let heap: EventHeap;
let store: StateStore;
let watches = 0;
/** What the next listings wait for, or return instead. */
let listings: ((listing: Promise<Listing>) => Promise<Listing>)[];
let breakWatch: () => void;
let following: StoreFollower;
let stopping: AbortController;

/** The store with listings and watches that the test controls. */
function held(inner: StateStore): StateStore {
  const target = Object.create(inner) as StateStore;
  target.latestRevision = () => inner.latestRevision();
  target.presentRevision = () => inner.presentRevision();
  target.list = (prefix, page) =>
    (listings.shift() ?? ((listing) => listing))(inner.list(prefix, page));
  target.watch = (from, prefix, signal) => {
    watches += 1;
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(quiet);
    breakWatch = () => broken.reject(new Error('the connection was lost'));
    return untilBroken(inner.watch(from, prefix, signal), broken.promise);
  };
  return target;
}

beforeEach(async () => {
  heap = new EventHeap();
  const { clock } = new SimProcess('p', heap, 0, () => false);
  store = await openMemoryStore({ random: seededRandom(1) });
  watches = 0;
  listings = [];
  following = new StoreFollower({ store: held(store), clock, log, retryDelayMs });
  stopping = new AbortController();
});

async function advance(ms: number): Promise<void> {
  const untilMs = heap.nowMs + ms;
  heap.after(ms, quiet);
  await heap.run(untilMs, () => false);
}

/** Notes every report; `listed h1,h2`, `put h3`, `delete h3`. */
function noting(told: string[], more: Partial<Follower> = {}): Follower {
  return {
    listed: ({ entries }) => told.push(`listed ${entries.map(({ key }) => key).join()}`),
    changed: ({ kind, key }) => told.push(`${kind} ${key}`),
    ...more,
  };
}

async function follow(follower: Follower): Promise<void> {
  const followed = following.follow('hosts', follower, stopping.signal);
  followed.catch(quiet);
  await advance(0);
  await followed;
}

test('all followers of a prefix share one watch, and each begins with a listing', async () => {
  await store.put('hosts.a', bytes('1'), 'absent');
  const [first, second]: string[][] = [[], []];
  await follow(noting(first ?? []));
  await store.put('hosts.b', bytes('1'), 'absent');
  await advance(0);
  await follow(noting(second ?? []));
  await store.put('hosts.c', bytes('1'), 'absent');
  await advance(0);
  expect(first).toEqual(['listed hosts.a', 'put hosts.b', 'put hosts.c']);
  expect(second).toEqual(['listed hosts.a,hosts.b', 'put hosts.c']);
  expect(watches).toBe(1);
});

test('a change that is written during a listing is reported after it', async () => {
  const told: string[] = [];
  await follow(noting([]));
  const gate = Promise.withResolvers<void>();
  listings = [(listing) => listing.then((read) => gate.promise.then(() => read))];
  const followed = following.follow('hosts', noting(told), stopping.signal);
  await advance(0);
  await store.put('hosts.a', bytes('1'), 'absent');
  await advance(0);
  expect(told).toEqual([]);
  gate.resolve();
  await advance(0);
  await followed;
  expect(told).toEqual(['listed ', 'put hosts.a']);
});

test('a listing that is older than the first change of the watch is not used', async () => {
  await follow(noting([]));
  const stale = await store.list('hosts');
  await store.put('hosts.a', bytes('1'), 'absent');
  await advance(0);
  listings = [() => Promise.resolve(stale)];
  const told: string[] = [];
  const followed = following.follow('hosts', noting(told), stopping.signal);
  await advance(retryDelayMs + 1);
  await followed;
  expect(told).toEqual(['listed hosts.a']);
});

test('a watch that broke off is made good by a listing for everybody', async () => {
  const told: string[][] = [[], []];
  for (const each of told) await follow(noting(each));
  breakWatch();
  await advance(0);
  await store.put('hosts.a', bytes('1'), 'absent');
  listings = [() => Promise.reject(new Error('the store is away'))];
  await advance(3 * retryDelayMs);
  await store.put('hosts.b', bytes('1'), 'absent');
  await advance(0);
  for (const each of told) {
    expect(each.filter((line) => line.includes('hosts.a'))).not.toEqual([]);
    expect(each.at(-1)).toBe('put hosts.b');
  }
  expect(watches).toBeGreaterThan(1);
});

test('a follower that throws gets a new listing, and other followers do not', async () => {
  const [failing, other]: string[][] = [[], []];
  let failures = 1;
  const changed = () => {
    if (failures-- > 0) throw new Error('it cannot be read');
  };
  await follow(noting(failing ?? [], { changed }));
  await follow(noting(other ?? []));
  await store.put('hosts.a', bytes('1'), 'absent');
  await store.put('hosts.b', bytes('1'), 'absent');
  await advance(retryDelayMs + 1);
  expect(failing).toEqual(['listed ', 'listed hosts.a,hosts.b']);
  expect(other).toEqual(['listed ', 'put hosts.a', 'put hosts.b']);
});

test('a listing that fails rejects, and the next request follows the prefix', async () => {
  listings = [() => Promise.reject(new Error('the store is away'))];
  await expect(follow(noting([]))).rejects.toThrow('away');
  const told: string[] = [];
  await follow(noting(told));
  await store.put('hosts.a', bytes('1'), 'absent');
  await advance(0);
  expect(told).toEqual(['listed ', 'put hosts.a']);
});

test('a follower that stops hears of nothing more', async () => {
  const told: string[] = [];
  await follow(noting(told));
  stopping.abort();
  await store.put('hosts.a', bytes('1'), 'absent');
  await advance(retryDelayMs);
  expect(told).toEqual(['listed ']);
});

test('a listing that has the newer record suppresses the older change of it', async () => {
  const told: string[] = [];
  await store.put('hosts.a', bytes('1'), 'absent');
  await follow(noting([]));
  // As when the position is read first, and the values after it.
  listings = [
    async (listing) => {
      const { before } = await listing;
      const [first] = (await store.list('hosts')).entries;
      await store.delete('hosts.a', first?.revision ?? 0);
      await store.put('hosts.a', bytes('2'), 'absent');
      return { entries: (await store.list('hosts')).entries, before };
    },
  ];
  await follow(noting(told));
  await store.put('hosts.b', bytes('1'), 'absent');
  await advance(0);
  expect(told).toEqual(['listed hosts.a', 'put hosts.b']);
});

test('a follower that was told of a coming listing gets one in the end', async () => {
  const told: string[] = [];
  await follow(noting(told, { listing: () => told.push('listing') }));
  listings = [1, 2].map(() => () => Promise.reject(new Error('the store is away')));
  breakWatch();
  await advance(4 * retryDelayMs);
  expect(told).toEqual(['listing', 'listed ', 'listing', 'listing', 'listing', 'listed ']);
});

test('a write between a new listing and the watch after it is told', async () => {
  const told: string[] = [];
  await store.put('hosts.a', bytes('1'), 'absent');
  await follow(noting(told));
  listings = [
    async (listing) => {
      const read = await listing;
      await store.put('hosts.b', bytes('1'), 'absent');
      return read;
    },
  ];
  breakWatch();
  await advance(3 * retryDelayMs);
  expect(told).toEqual(['listed hosts.a', 'listed hosts.a', 'put hosts.b']);
});
