/** What a replica learns of hosts, and what a resync finds. */
import { asWriteId, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { connectAgent } from '../testing/plain-agent.ts';
import { rigWith } from '../testing/rig.ts';

test.each([
  ['a host’s record', storeKey('hosts', 'h1'), ['h2', 'h3']],
  ['a rack’s record', storeKey('racks', 'r0'), ['h1', 'h2', 'h3']],
])('%s that cannot be decoded stops neither the start nor a resync', async (_, key, readable) => {
  const rig = rigWith({}, {}, {});
  const expected = rig.lastRevision(key) || 'absent';
  rig.disk.write({ key, value: Uint8Array.of(255), expected, writeId: asWriteId('cut short') });
  const replica = await rig.replica({ resyncIntervalMs: 60_000, deaf: true });
  expect(replica.hosts.hostIdsOfRack('r1').toSorted()).toEqual(readable);
  // It gets no reports: only a resync finds removed hosts.
  rig.remove(storeKey('hosts', 'h3'));
  await rig.advance(130_000);
  expect(replica.hosts.hostIdsOfRack('r1').toSorted()).toEqual(readable.slice(0, -1));
  expect(rig.lines.filter((line) => line.includes('the resync failed'))).toEqual([]);
});

test('a resync takes so much time for each host', async () => {
  const rig = rigWith(...Array.from({ length: 9 }, () => ({})));
  for (let n = 10; n <= 250; n += 1) rig.addHost(n);
  const pages: number[] = [];
  await rig.replica({
    resyncIntervalMs: 60_000,
    wrapStore: (store) => {
      const list = store.list.bind(store);
      store.list = async (prefix, page) => {
        if (prefix === 'hosts' && page?.limit === 100) pages.push(rig.clock.nowMs());
        return await list(prefix, page);
      };
      return store;
    },
  });
  await rig.advance(75_000);
  expect(pages.map((atMs) => atMs - (pages[0] ?? 0))).toEqual([0, 4_000, 8_000]);
});

test('a new host gets no second pass when the first one has gone on from its record', async () => {
  const rig = rigWith({});
  const key = storeKey('hosts', 'h1');
  const made = rig.lastRevision(key);
  let reads = 0;
  const replica = await rig.replica({
    wrapStore: (store) => {
      const get = store.get.bind(store);
      store.get = async (asked) => {
        if (asked === key) reads += 1;
        return await get(asked);
      };
      return store;
    },
  });
  await connectAgent(rig, replica);
  await rig.advance(1_000);
  const readsOf = async (revision: number) => {
    reads = 0;
    replica.hosts.wakeCreated('h1', revision);
    await rig.advance(1_000);
    return reads;
  };
  const present = rig.lastRevision(key);
  expect(present).toBeGreaterThan(made);
  expect(await readsOf(made)).toBe(0);
  expect(await readsOf(present)).toBe(1);
});
