import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { digest } from '../decide/rollout.fixture.ts';
import { PoolSite } from './crash.fixture.ts';

/** A store in which every third read of the pool shows an earlier state. */
function stale(store: StateStore): StateStore {
  let looks = 0;
  return changed(store, {
    get: async (key) => {
      const found = await store.get(key);
      looks += key.startsWith('pools.') ? 1 : 0;
      if (!key.startsWith('pools.') || looks % 3 > 0) return found;
      const before = (await store.history(key)).at(-6);
      return before?.kind === 'put' ? { ...before, kind: 'found' } : found;
    },
  });
}

/** A store that loses the slots with every fifth change of the pool. */
function forgetful(store: StateStore): StateStore {
  let changes = 0;
  return changed(store, {
    put: (key, value, expected, writeId) => {
      changes += key.startsWith('pools.') ? 1 : 0;
      if (!key.startsWith('pools.') || changes % 5 > 0) {
        return store.put(key, value, expected, writeId);
      }
      const record = fromBinary(wire.PoolRecordSchema, value);
      if (record.pool?.status !== undefined) record.pool.status.slots = [];
      return store.put(key, toBinary(wire.PoolRecordSchema, record), expected, writeId);
    },
  });
}

function changed(store: StateStore, change: Partial<StateStore>): StateStore {
  return new Proxy(store, {
    get: (target, name) => {
      const part: unknown = Reflect.get(change, name) ?? Reflect.get(target, name);
      return typeof part === 'function' ? part.bind(target) : part;
    },
  });
}

test('two replicas roll out: never more out than may be, each deployment told once', async () => {
  const site = new PoolSite(1);
  await site.rollOut('A');
  await site.rollOut('B');
  expect([...site.problems]).toEqual([]);
  expect(site.ledger().toSorted()).toEqual(site.successes.toSorted());
  expect(site.history().map((each) => [each.digest, each.hostCount, each.currentHosts])).toEqual([
    [digest('B'), 8, 8],
    [digest('A'), 8, 0],
  ]);
  site.kill();
});

test.each([11, 12])(
  'garm-R19, garm-R21: replicas that die at any call of a store lose no slot and no entry (%i)',
  async (seed) => {
    const site = new PoolSite(seed, { crashes: true });
    await site.rollOut('A');
    await site.rollOut('B');
    expect([...site.problems]).toEqual([]);
    expect(site.ledger().toSorted()).toEqual(site.successes.toSorted());
    expect(site.history().map(({ hostCount }) => hostCount)).toEqual([8, 8]);
    site.kill();
  },
);

test('garm-R21: a replica that has looked at an old pool writes nothing over it', async () => {
  const site = new PoolSite(21, { wrapStore: stale });
  await site.rollOut('A');
  await site.rollOut('B');
  expect([...site.problems]).toEqual([]);
  expect(site.ledger().toSorted()).toEqual(site.successes.toSorted());
  site.kill();
});

test('lost slots are noticed: hosts are out without one, or more than may be', async () => {
  const site = new PoolSite(31, { wrapStore: forgetful });
  await site.rollOut('A');
  expect([...site.problems].join()).toMatch(/out without a slot|hosts out at once/);
  site.kill();
});
