import { create, toBinary } from '@bufbuild/protobuf';
import { HostSchema, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FleetView } from '../fleet-view/index.ts';
import { HostLocations } from './host-locations.ts';
import { scopedStore, watchCollections } from './scoped-store.ts';

const scope = { racks: ['racks/aa'], pools: [] };
/** For tests without credentials or racks. */
const places = new HostLocations({ rows: () => [] as never });
const clock = nodeClock();
let inner: StateStore;
let reads: string[];
let stop: AbortController;

beforeEach(async () => {
  inner = await openMemoryStore({ random: nodeRandom() });
  reads = [];
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await inner.close();
});

/** The store, with a record of every read. */
function counted(): StateStore {
  return new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => {
        if (['get', 'list', 'history', 'past'].includes(String(name))) {
          reads.push(`${String(name)} ${String(args[0])}`);
        }
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}

async function put(key: string, value: Uint8Array): Promise<void> {
  const found = await inner.get(key);
  const expected = found.kind === 'found' ? found.revision : 'absent';
  expect((await inner.put(key, value, expected)).kind).toBe('ok');
}

let turn = 0;
function hostBytes(rack: string, credential = ''): Uint8Array {
  turn += 1;
  const spec = { rack: `racks/${rack}`, bmc: { credential } };
  const host = create(HostSchema, { uid: 'u', spec, labels: { turn: String(turn) } });
  return toBinary(wire.HostRecordSchema, create(wire.HostRecordSchema, { host }));
}

/** What a watch of hosts in the scope reports from now on. */
async function told(store: StateStore): Promise<string[]> {
  const heard: string[] = [];
  const from = await inner.latestRevision();
  void (async () => {
    for await (const event of watchCollections(store, from, ['hosts', 'facts'], stop.signal)) {
      heard.push(event.kind === 'compacted' ? 'compacted' : `${event.kind} ${event.key}`);
    }
  })();
  return heard;
}

async function soon(isSo: () => boolean): Promise<void> {
  for (let round = 0; round < 500 && !isSo(); round += 1) {
    await new Promise<void>((resolve) => nodeClock().after(2, resolve));
  }
}

test('a watch of one rack looks only once at each host of other racks', async () => {
  await put('hosts.there', hostBytes('zz'));
  await put('hosts.here', hostBytes('aa'));
  const heard = await told(scopedStore(counted(), scope, { locations: places, clock }));
  for (let round = 0; round < 30; round += 1) {
    await put('hosts.there', hostBytes('zz'));
    await put('facts.there', Uint8Array.of(round));
    for (const collection of ['workflows', 'workflowBatches', 'credentials', 'runs', 'racks']) {
      await put(storeKey(collection, 'there'), Uint8Array.of(8, round));
    }
  }
  await put('hosts.here', hostBytes('aa'));
  await soon(() => heard.length > 0);
  expect(heard).toEqual(['put hosts.here']);
  expect(reads).toEqual(['history hosts.there']);
});

test('a host that leaves the scope is reported as deleted, whatever was seen before', async () => {
  await put('hosts.h', hostBytes('aa'));
  await put('facts.h', Uint8Array.of(1));
  const slow = counted();
  // The read of the host whose facts have changed is newer than the watch.
  const heard = await told(scopedStore(slow, scope, { locations: places, clock }));
  await put('facts.h', Uint8Array.of(2));
  await put('hosts.h', hostBytes('zz'));
  await put('facts.h', Uint8Array.of(3));
  await soon(() => heard.includes('delete hosts.h'));
  expect(heard.at(-1)).toBe('delete hosts.h');
  await put('hosts.h', hostBytes('aa'));
  await put('facts.h', Uint8Array.of(4));
  await soon(() => heard.at(-1) === 'put facts.h');
  expect(heard.slice(-2)).toEqual(['put hosts.h', 'put facts.h']);
});

test('credentials and racks are judged by the rows of the fleet, without a list', async () => {
  const fleetView = new FleetView({ store: inner, clock: nodeClock(), log, retryDelayMs: 10 });
  const places = new HostLocations(fleetView);
  await put('hosts.h', hostBytes('aa', 'credentials/mine'));
  await put('hosts.there', hostBytes('zz', 'credentials/theirs'));
  await fleetView.start();
  for (const id of ['mine', 'theirs']) await put(`credentials.${id}`, Uint8Array.of());
  const store = scopedStore(counted(), scope, { locations: places, clock });
  expect((await store.get('credentials.mine')).kind).toBe('found');
  expect((await store.get('credentials.theirs')).kind).toBe('absent');
  expect(reads.filter((read) => read.startsWith('list'))).toEqual([]);
  await put('hosts.h', hostBytes('aa', 'credentials/theirs'));
  const isSeen = async () => (await store.get('credentials.theirs')).kind === 'found';
  for (let round = 0; round < 500 && !(await isSeen()); round += 1) {
    await new Promise<void>((resolve) => nodeClock().after(2, resolve));
  }
  expect(await isSeen()).toBe(true);
  expect((await store.get('credentials.mine')).kind).toBe('absent');
  fleetView.stop();
});

test('the records of a host are in scope if the host’s own record is', async () => {
  await put('hosts.h', hostBytes('aa'));
  await put('hosts.there', hostBytes('zz'));
  for (const id of ['h', 'there']) await put(`workflows.${id}.w`, Uint8Array.of());
  const store = scopedStore(counted(), scope, { locations: places, clock });
  expect((await store.get('workflows.h.w')).kind).toBe('found');
  expect((await store.get('workflows.there.w')).kind).toBe('absent');
  expect(reads).toEqual([
    ...['get workflows.h.w', 'get hosts.h'],
    ...['get workflows.there.w', 'get hosts.there'],
  ]);
  // Of many hosts, each once.
  for (let n = 0; n < 40; n += 1) {
    for (const id of ['v', 'w']) await put(`workflows.h${n}.${id}`, Uint8Array.of());
  }
  reads = [];
  expect((await store.list('workflows')).entries.map(({ key }) => key)).toEqual(['workflows.h.w']);
  expect(reads).toHaveLength(1 + 42);
  expect(reads.filter((read) => read.startsWith('list'))).toEqual(['list workflows']);
});

test('a list that passes many hidden records lets other calls run between its reads', async () => {
  for (let n = 0; n < 25; n += 1) await put(`hosts.h${n + 10}`, hostBytes(n === 24 ? 'aa' : 'zz'));
  let pauses = 0;
  const counting: Pick<Clock, 'after'> = {
    after: (_, act) => {
      pauses += 1;
      // Whoever has waited no longer than this call goes first.
      expect(reads).toHaveLength(pauses);
      queueMicrotask(act);
      return () => undefined;
    },
  };
  const store = scopedStore(counted(), scope, { locations: places, clock: counting });
  const { entries } = await store.list('hosts', { limit: 10 });
  expect(entries.map(({ key }) => key)).toEqual(['hosts.h34']);
  expect([reads.length, pauses]).toEqual([3, 2]);
});
