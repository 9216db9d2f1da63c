/** The view equals a clustered store, whatever happens to the leader of its bucket. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { HostState, store as wire } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { openNatsStore, type StateStore, type WriteId } from '@rackwright/store';
import { NatsCluster, serverMissing } from '@rackwright/store/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FleetView, type HostRow } from './index.ts';

const hosts = 20;
const log = { info: () => undefined, warn: () => undefined };
let cluster: NatsCluster | undefined;
let store: StateStore;
let view: FleetView;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  cluster = await NatsCluster.start({ servers: 3, syncAlways: true });
  store = await openNatsStore({
    servers: cluster.addresses,
    random: nodeRandom(),
    bucket: `view-${randomBytes(6).toString('hex')}`,
    replicas: 3,
    durability: { kind: 'monitors', urls: cluster.monitors },
    callTimeoutMs: 40_000,
  });
  view = new FleetView({ store, clock: nodeClock(), log, retryDelayMs: 200 });
});

afterAll(async () => {
  view?.stop();
  await store?.close();
  await cluster?.dispose();
});

/** Writes under one id until the outcome is certain. */
async function write(n: number, rack: string | undefined): Promise<void> {
  const key = `hosts.h${n}`;
  const found = await store.get(key);
  const spec = { rack: rack ?? '' };
  const host = { name: `hosts/h${n}`, uid: `u${n}`, spec, status: { state: HostState.NEW } };
  const value = toBinary(wire.HostRecordSchema, create(wire.HostRecordSchema, { host }));
  const expected = found.kind === 'found' ? found.revision : 'absent';
  for (let writeId: WriteId | undefined; ; ) {
    const result =
      rack === undefined
        ? await store.delete(key, found.revision ?? 0, writeId)
        : await store.put(key, value, expected, writeId);
    if (result.kind !== 'unknown') return expect(result.kind).toBe('ok');
    ({ writeId } = result);
  }
}

/** "h1 racks/r1" of each host, by the store and by the view. */
async function shown(): Promise<readonly [string[], string[]]> {
  await view.caughtUp();
  const rows = [...view.rows()].filter((row): row is HostRow => row.kind === 'host');
  const keys = (await store.list('hosts')).entries.map(({ key }) => key.slice('hosts.'.length));
  return [keys.toSorted(), rows.map(({ hostId }) => hostId)];
}

test('the view loses nothing while the leader is killed and comes back', async (context) => {
  const reason = serverMissing();
  if (reason !== undefined || cluster === undefined) return context.skip(reason);
  for (let n = 0; n < hosts; n += 1) await write(n, 'racks/r1');
  await view.start();
  const [victim = ''] = cluster.names;
  for (let n = 0; n < hosts; n += 1) {
    // Whichever server leads: each of them is away for some of the writes.
    if (n % 10 === 5) await cluster.kill([cluster.names[((n / 5) % 3) | 0] ?? victim]);
    await write(n, n % 3 === 0 ? undefined : 'racks/r2');
    if (n % 10 === 8) await cluster.startAll();
  }
  await cluster.startAll();
  for (let left = 100; left > 0; left -= 1) {
    try {
      await view.caughtUp();
      break;
    } catch {
      await delay(200);
    }
  }
  const [kept, rows] = await shown();
  expect(rows).toEqual(kept);
  expect(rows).toHaveLength(hosts - Math.ceil(hosts / 3));
  expect([...view.idsBy('rack', 'racks/r1')]).toEqual([]);
  expect([...view.idsBy('rack', 'racks/r2')]).toEqual(rows);
}, 180_000);
