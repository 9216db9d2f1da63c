/** A watch whose changes come late, as they do when a server of the store has failed. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type CallContext,
  type Progress,
  WatchHostsRequestSchema,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { systemPrincipal } from '../../access/index.ts';
import { watchHosts } from './watch-hosts.ts';

const key = 'hosts.h1';

async function write(store: StateStore, site: string, expected: 'absent' | number) {
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
  const served: { progress?: Progress } = {};
  const hosts = {
    agentConnected: () => true,
    progressOf: () => served.progress,
    queuePosition: () => undefined,
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
