/** A watch whose changes come late, as they do when a server of the store has failed. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type CallContext,
  type HostId,
  WatchHostsResponse_Kind as Kind,
  type Progress,
  type RackId,
  WatchHostsRequestSchema,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { type Listing, openMemoryStore, type StateStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { systemPrincipal } from '../../access/index.ts';
import { watchCollection } from '../../call/watch-collection.ts';
import type { ServedObserver } from '../index.ts';
import { watchHosts } from './watch-hosts.ts';

async function write(
  store: StateStore,
  site: string,
  expected: 'absent' | number,
  key = 'hosts.h1',
) {
  const host = { name: 'hosts/h1', uid: 'u1', labels: { site }, spec: { rack: 'racks/r1' } };
  const record = create(wire.HostRecordSchema, { host });
  const put = await store.put(key, toBinary(wire.HostRecordSchema, record), expected);
  if (put.kind !== 'ok') throw new Error('the test writes alone');
  return put.revision;
}

test('a host that was read at a newer revision ignores older changes that come later', async () => {
  const store = await openMemoryStore({ random: nodeRandom() });
  const late = Promise.withResolvers<void>();
  const watch = store.watch.bind(store);
  Object.assign(store, {
    async *watch(...args: Parameters<StateStore['watch']>) {
      await late.promise;
      yield* watch(...args);
    },
  });
  const tick = Promise.withResolvers<() => void>();
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (_: number, act: () => void) => {
      tick.resolve(act);
      return () => undefined;
    },
  };
  const observers: ServedObserver[] = [];
  const served: { progress?: Progress } = {};
  const hosts = {
    isAgentConnected: () => true,
    progressOf: () => served.progress,
    queuePosition: () => undefined,
    onServedChange: (observer: ServedObserver) => {
      observers.push(observer);
      return () => undefined;
    },
  };
  const ending = new AbortController();
  const context = { signal: ending.signal } as CallContext;
  const deps = { store, clock, hosts, principal: systemPrincipal, fleetView: {} as never };
  const told = watchHosts(deps, create(WatchHostsRequestSchema, {}), context);
  const site = async () => (await told.next()).value?.host?.labels?.['site'];

  const first = await write(store, 'a', 'absent');
  expect(await site()).toBe('a');
  expect(await site()).toBe(undefined);
  const second = await write(store, 'b', first);
  const third = await write(store, 'c', second);
  served.progress = { percent: 10 } as Progress;
  for (const observer of observers) observer.progressChanged('h1');
  const ticked = site();
  (await tick.promise)();
  expect(await ticked).toBe('c');
  late.resolve();
  // Its own change still comes, with its position.
  expect(await site()).toBe('c');
  await write(store, 'd', third);
  expect(await site()).toBe('d');
  ending.abort();
  await told.return(undefined);
});

const hostsPerRack = 20;

async function fleetOf(count: number): Promise<StateStore> {
  const store = await openMemoryStore({ random: nodeRandom() });
  for (let at = 0; at < count; at += 1) {
    const spec = { rack: `racks/r${Math.floor(at / hostsPerRack)}` };
    const record = create(wire.HostRecordSchema, { host: { name: `hosts/h${at}`, spec } });
    await store.put(`hosts.h${at}`, toBinary(wire.HostRecordSchema, record), 'absent');
  }
  return store;
}

/** A watch with ticks, and which hosts' progress it asks for. */
function tickedWatch(store: StateStore) {
  let tick = () => {};
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (_: number, act: () => void) => {
      tick = act;
      return () => undefined;
    },
  };
  const observers = new Set<ServedObserver>();
  const percents = new Map<string, number>();
  const away = new Set<string>();
  const asked: string[] = [];
  const hosts = {
    isAgentConnected: (rackId: RackId) => !away.has(rackId),
    progressOf: (hostId: HostId) => {
      asked.push(hostId);
      const percent = percents.get(hostId);
      return percent === undefined ? undefined : ({ percent } as Progress);
    },
    queuePosition: () => undefined,
    onServedChange: (observer: ServedObserver) => {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
  const deps = { store, clock, hosts, principal: systemPrincipal, fleetView: {} as never };
  const context = { signal: new AbortController().signal } as CallContext;
  const told = watchHosts(deps, create(WatchHostsRequestSchema, {}), context);
  const ticked = async () => {
    await new Promise(setImmediate);
    asked.length = 0;
    tick();
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  };
  return { told, ticked, observers, percents, away, asked };
}

test('a tick compares only the hosts whose progress or agent may have changed', async () => {
  const count = 1_000;
  const { told, ticked, observers, percents, away, asked } = tickedWatch(await fleetOf(count));
  for (let at = 0; at <= count; at += 1) await told.next();
  const ofHost = told.next();
  await ticked();
  expect(asked).toEqual([]);

  percents.set('h5', 10);
  for (const observer of observers) observer.progressChanged('h5');
  await ticked();
  expect((await ofHost).value?.host?.name).toBe('hosts/h5');
  // It is compared, shown, and kept as sent.
  expect(asked).toEqual(['h5', 'h5', 'h5']);

  away.add('r7');
  for (const observer of observers) observer.agentChanged('r7');
  const ofRack = told.next();
  await ticked();
  expect((await ofRack).value?.host?.name).toBe('hosts/h140');
  for (let at = 1; at < hostsPerRack; at += 1) await told.next();
  expect(new Set(asked).size).toBe(hostsPerRack);
  await told.return(undefined);
  expect(observers.size).toBe(0);
});

/** Deletes the host at this revision, and creates another one of its name. */
async function replace(store: StateStore, revision: number): Promise<void> {
  await store.delete('hosts.h1', revision);
  await write(store, 'b', 'absent');
}

test('a host that is replaced between two pages is not reported as deleted after it', async () => {
  const store = await openMemoryStore({ random: nodeRandom() });
  const onFirstPage = Array.from({ length: 200 }, (_, n) => `hosts.a${n}`);
  for (const each of onFirstPage) await write(store, 'a', 'absent', each);
  const first = await write(store, 'a', 'absent');
  const list = store.list.bind(store);
  store.list = async (prefix, page) => {
    if (page?.after !== '') await replace(store, first);
    return await list(prefix, page);
  };
  const clock = { nowMs: () => 0, suspendAwareMs: () => 0, after: () => () => undefined };
  const hosts = {
    isAgentConnected: () => true,
    progressOf: () => undefined,
    queuePosition: () => undefined,
    onServedChange: () => () => undefined,
  };
  const ending = new AbortController();
  const context = { signal: ending.signal } as CallContext;
  const deps = { store, clock, hosts, principal: systemPrincipal, fleetView: {} as never };
  const told = watchHosts(deps, create(WatchHostsRequestSchema, {}), context);
  const next = async () => {
    const { kind, host } = (await told.next()).value ?? {};
    return [kind, host?.labels?.['site']];
  };
  for (const _ of onFirstPage) await next();
  expect(await next()).toEqual([Kind.UPDATED, 'b']);
  expect(await next()).toEqual([Kind.SYNCED, undefined]);
  expect(await next()).toEqual([Kind.UPDATED, 'b']);
  ending.abort();
  await told.return(undefined);
});

test('a watch of a collection skips changes older than a record that it has listed', async () => {
  const store = await openMemoryStore({ random: nodeRandom() });
  const first = await write(store, 'a', 'absent');
  const list = store.list.bind(store);
  // The store may list newer records than the position that it names.
  store.list = async (prefix): Promise<Listing> => {
    const { before } = await list(prefix);
    await replace(store, first);
    return { ...(await list(prefix)), before };
  };
  const watched = {
    collection: 'hosts',
    schema: wire.HostRecordSchema,
    kinds: Kind,
    show: ({ record }: { readonly record: wire.HostRecord }) => ({
      site: record.host?.labels['site'],
    }),
    gone: () => ({ site: undefined }),
  };
  const ending = new AbortController();
  const told = watchCollection(store, watched, '', ending.signal);
  const next = async () => (await told.next()).value;
  expect(await next()).toMatchObject({ kind: Kind.UPDATED, site: 'b' });
  expect(await next()).toMatchObject({ kind: Kind.SYNCED });
  const found = await store.get('hosts.h1');
  await write(store, 'c', found.revision ?? 0);
  expect(await next()).toMatchObject({ kind: Kind.UPDATED, site: 'c' });
  ending.abort();
  await told.return(undefined);
});
