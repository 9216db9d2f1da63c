/** What a page of a listing asks of the servers, counted. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { bytes, revisionOf } from '../conformance/subject.ts';
import type { StateStore } from '../contract.ts';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { BucketChannel } from './channel.ts';
import { openNatsStore } from './open.ts';
import { clusterOptions } from './subject.ts';

/** Each call of these is one request, or for all keys one for each part of them. */
const requests = (['last', 'at', 'info', 'keysMatching'] as const).map((name) => {
  return vi.spyOn(BucketChannel.prototype, name);
});
const count = () => requests.reduce((sum, { mock }) => sum + mock.calls.length, 0);

let cluster: NatsCluster;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  // The counts do not depend on the number of replicas of the bucket, or on its disk.
  cluster = await NatsCluster.start({ servers: 1, syncAlways: false });
});

afterAll(async () => {
  vi.restoreAllMocks();
  await cluster?.dispose();
});

async function filled(hosts: number): Promise<StateStore> {
  const options = { ...clusterOptions(cluster), acceptUnprovenDurability: true };
  const store = await openNatsStore(options);
  for (let from = 0; from < hosts; from += 100) {
    const puts = Array.from({ length: 100 }, async (_, at) => {
      const id = `hosts.h${from + at}`;
      const revision = revisionOf(await store.put(id, bytes('1'), 'absent'));
      // Every second key has only the mark of its deletion left.
      if (at % 2 === 1) await store.delete(id, revision);
    });
    await Promise.all(puts);
  }
  return store;
}

test('a page asks for its values alone, however many keys there are', async (context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
  for (const hosts of [200, 2_000]) {
    const store = await filled(hosts);
    // The first one may have to wait for the index.
    await store.list('hosts', { limit: 1 });
    for (const [limit, after] of [
      [10, ''],
      [100, ''],
      [10, 'hosts.h150'],
    ] as const) {
      const before = count();
      const { entries } = await store.list('hosts', { limit, after });
      expect(entries).toHaveLength(limit);
      expect(count() - before, `${limit} of ${hosts} hosts`).toBe(limit + 1);
    }
    const before = count();
    await store.list('runs.nobody');
    expect(count() - before, 'a list of nothing').toBe(1);
    await store.close();
  }
});
