/**
 * The view equals the store, whatever happens to the watch, and `caughtUp` shows earlier writes.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { type HostId, HostState, store as wire } from '@rackwright/messages';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import {
  openMemoryStore,
  type StateStore,
  type StoreRevision,
  type WatchEvent,
} from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { untilBroken } from '../following/until-broken.fixture.ts';
import { type FleetRow, FleetView, type HostConditions } from './index.ts';

const retryDelayMs = 1_000;
const quiet = () => undefined;

let heap: EventHeap;
let store: StateStore;
let view: FleetView;
let breakWatch: (error: Error | 'compacted') => void;
/** Listings wait for this. */
let gate: Promise<void>;
/** What a server answers that does not know the latest writes. */
let oldRevision: StoreRevision | undefined;
/** And for this long, by the clock of the view. */
let listMs: number;
let said: unknown[];

/** The store, with listings and watches that the test controls. */
function held(inner: StateStore): StateStore {
  const target = Object.create(inner) as StateStore;
  target.latestRevision = async () => oldRevision ?? (await inner.latestRevision());
  target.presentRevision = () => inner.presentRevision();
  target.list = async (prefix, page) => {
    const listing = await inner.list(prefix, page);
    await gate;
    if (listMs > 0) await new Promise<void>((resolve) => heap.after(listMs, resolve));
    return listing;
  };
  target.watch = (from, prefix, signal) => {
    const broken = Promise.withResolvers<IteratorResult<WatchEvent>>();
    broken.promise.catch(quiet);
    breakWatch = (how) => {
      const value = { kind: 'compacted', reason: 'trimmed' } as const;
      if (how === 'compacted') broken.resolve({ done: false, value });
      else broken.reject(how);
    };
    return untilBroken(inner.watch(from, prefix, signal), broken.promise);
  };
  return target;
}

beforeEach(async () => {
  heap = new EventHeap();
  const { clock } = new SimProcess('p', heap, 0, () => false);
  store = await openMemoryStore({ random: seededRandom(1) });
  gate = Promise.resolve();
  listMs = 0;
  oldRevision = undefined;
  said = [];
  const log = { warn: quiet, info: (fields: unknown) => void said.push(fields) };
  view = new FleetView({ store: held(store), clock, log, retryDelayMs });
});

async function during<T>(work: Promise<T>, ms = 0): Promise<T> {
  work.catch(quiet);
  const untilMs = heap.nowMs + ms;
  heap.after(ms, quiet);
  await heap.run(untilMs, () => false);
  return await work;
}

async function put(
  hostId: HostId,
  rack: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  const spec = { rack, bmc: { credential: 'credentials/c' } };
  const status = { state: HostState.NEW };
  const host = { name: `hosts/${hostId}`, labels: { ...labels }, spec, status };
  const record = create(wire.HostRecordSchema, { host });
  await write(`hosts.${hostId}`, toBinary(wire.HostRecordSchema, record));
}

async function write(key: string, value: Uint8Array): Promise<void> {
  const found = await store.get(key);
  const result = await store.put(key, value, found.kind === 'found' ? found.revision : 'absent');
  expect(result.kind).toBe('ok');
}

async function remove(hostId: HostId): Promise<void> {
  const { revision = 0 } = await store.get(`hosts.${hostId}`);
  await store.delete(`hosts.${hostId}`, revision);
}

const inRack = (rack: string) => [...view.idsBy('rack', rack)];

test('a caller that has waited sees what was written before, of any kind', async () => {
  await put('a', 'racks/r1');
  await during(view.caughtUp());
  expect(inRack('racks/r1')).toEqual(['a']);
  await put('b', 'racks/r1');
  await put('a', 'racks/r2');
  await write('facts.a', new Uint8Array());
  await during(view.caughtUp());
  expect([inRack('racks/r1'), inRack('racks/r2')]).toEqual([['b'], ['a']]);
  expect(view.revision).toBe(await store.latestRevision());
  await remove('b');
  await during(view.caughtUp());
  expect(inRack('racks/r1')).toEqual([]);
  expect(view.counts().hosts).toBe(1);
});

test('a caller sees what was written before, though an old revision is read for it', async () => {
  await put('a', 'racks/r1');
  await during(view.caughtUp());
  oldRevision = await store.latestRevision();
  breakWatch(new Error('lost'));
  await put('b', 'racks/r1');
  const seen = view.caughtUp().then(() => inRack('racks/r1'));
  expect(await during(seen, 2 * retryDelayMs)).toEqual(['a', 'b']);
});

test('while the view is built it says from time to time how far that has come', async () => {
  for (let at = 0; at < 2_600; at += 1) await put(`h${at}`, 'racks/r1');
  listMs = 3_000;
  await during(view.start(), 60_000);
  expect(said).toEqual([{ hosts: 1_000 }, { hosts: 2_000 }, { hosts: 2_600 }]);
});

test('a record that is written while the view is built is in the view', async () => {
  for (let at = 0; at < 1_200; at += 1) await put(`h${at}`, 'racks/r1');
  const open = Promise.withResolvers<void>();
  gate = open.promise;
  const starting = view.start();
  await during(Promise.resolve());
  await put('h0', 'racks/r2');
  await remove('h1');
  await put('z', 'racks/r2');
  open.resolve();
  await during(starting, 100);
  await during(view.caughtUp());
  expect(inRack('racks/r2')).toEqual(['h0', 'z']);
  expect(inRack('racks/r1')).toHaveLength(1_198);
});

test.each([new Error('lost'), 'compacted'] as const)(
  'a watch that breaks off (%s) is made good, and shows its rows meanwhile',
  async (how) => {
    await put('a', 'racks/r1');
    await during(view.caughtUp());
    breakWatch(how);
    await during(Promise.resolve());
    await put('b', 'racks/r1');
    await remove('a');
    const waiting = view.caughtUp();
    await during(Promise.resolve());
    expect(inRack('racks/r1')).toEqual(['a']);
    await during(waiting, retryDelayMs);
    expect(inRack('racks/r1')).toEqual(['b']);
    await put('c', 'racks/r1');
    await during(view.caughtUp());
    expect(inRack('racks/r1')).toEqual(['b', 'c']);
  },
);

test('a caller that would wait too long is told so', async () => {
  await during(view.caughtUp());
  gate = new Promise(quiet);
  breakWatch('compacted');
  await during(Promise.resolve(), retryDelayMs);
  await put('a', 'racks/r1');
  await expect(during(view.caughtUp(), 10_000)).rejects.toThrow('not up to date');
});

test('a record that cannot be decoded is shown as such, and the others go on', async () => {
  await write('hosts.bad', Uint8Array.of(255));
  await put('a', 'racks/r1');
  await during(view.caughtUp());
  expect(view.counts().unreadable).toMatchObject([{ hostId: 'bad', kind: 'unreadable' }]);
  await write('hosts.a', Uint8Array.of(255));
  await put('bad', 'racks/r1');
  await during(view.caughtUp());
  expect(view.counts().unreadable).toMatchObject([{ hostId: 'a' }]);
  expect(inRack('racks/r1')).toEqual(['bad']);
});

test('a store that cannot be read at the start is read when it is asked for again', async () => {
  gate = Promise.reject(new Error('the store is away'));
  gate.catch(quiet);
  await expect(during(view.start())).rejects.toThrow('away');
  gate = Promise.resolve();
  await put('a', 'racks/r1');
  await during(view.caughtUp());
  expect(inRack('racks/r1')).toEqual(['a']);
});

/** "before → after" of each reported row: its rack each, or nothing. */
function heard(): string[] {
  const told: string[] = [];
  const rackOf = (row: FleetRow | undefined) => (row?.kind === 'host' ? row.rack : row?.kind);
  view.onChange((before, after) => {
    const { hostId } = after ?? before ?? {};
    told.push(`${hostId}: ${rackOf(before)} → ${rackOf(after)}`);
  }, new AbortController().signal);
  return told;
}

test('an observer is told of each row that came, changed or went', async () => {
  await put('a', 'racks/r1');
  await during(view.start());
  const told = heard();
  await put('b', 'racks/r2');
  await put('a', 'racks/r3');
  await remove('b');
  await write('hosts.a', Uint8Array.of(255));
  await during(view.caughtUp());
  expect(told).toEqual([
    'b: undefined → racks/r2',
    'a: racks/r1 → racks/r3',
    'b: racks/r2 → undefined',
    'a: racks/r3 → unreadable',
  ]);
});

test('an observer is told what the watch has missed, and of nothing else', async () => {
  for (const id of ['a', 'b', 'c']) await put(id, 'racks/r1');
  await during(view.start());
  const told = heard();
  breakWatch('compacted');
  await put('a', 'racks/r2');
  await remove('b');
  await put('d', 'racks/r4');
  await during(view.caughtUp(), 2 * retryDelayMs);
  expect(told).toEqual([
    'a: racks/r1 → racks/r2',
    'd: undefined → racks/r4',
    'b: racks/r1 → undefined',
  ]);
});

test('an observer that fails stops neither the view nor another observer', async () => {
  await during(view.start());
  view.onChange(() => {
    throw new Error('broken');
  }, new AbortController().signal);
  const told = heard();
  await put('a', 'racks/r1');
  await during(view.caughtUp());
  expect([told, inRack('racks/r1')]).toEqual([['a: undefined → racks/r1'], ['a']]);
});

test('hosts are looked for by the part of what is wanted that the fewest have', async () => {
  const labels = { site: 'aa', 'asset.tag': '7' };
  for (const id of ['a', 'b', 'c']) await put(id, 'racks/r1', id === 'b' ? labels : {});
  await during(view.caughtUp());
  const candidates = (wanted: Partial<HostConditions>) => [
    ...view.candidates({ names: [], rack: '', labels: {}, ...wanted }),
  ];
  expect(candidates({})).toEqual([]);
  expect(candidates({ rack: 'racks/r1' })).toEqual(['a', 'b', 'c']);
  expect(candidates({ rack: 'racks/r1', labels: { site: 'aa' } })).toEqual(['b']);
  expect(candidates({ labels: { site: 'aa', 'asset.tag': '8' } })).toEqual([]);
  expect(candidates({ names: ['hosts/c'], rack: 'racks/r1' })).toEqual(['c']);
});

test('an observer that fails when it is told of a record makes no record unreadable', async () => {
  view.onRecord(() => {
    throw new Error('broken');
  });
  await put('a', 'racks/r1');
  await during(view.caughtUp());
  await put('b', 'racks/r1');
  await during(view.caughtUp());
  expect([inRack('racks/r1'), view.unreadableCount]).toEqual([['a', 'b'], 0]);
});
