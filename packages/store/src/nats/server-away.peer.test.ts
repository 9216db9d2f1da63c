/** A store that is opened while one of three servers is away, and what becomes of it afterwards. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { openNatsStore } from './open.ts';
import { clusterOptions } from './subject.ts';

/** More than one look at servers that are silent. */
const SEEN_WITHIN_MS = 60_000;
const away = 'n3';

let cluster: NatsCluster;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  cluster = await NatsCluster.start({ servers: 3, syncAlways: true });
});

beforeEach((context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
});

afterAll(() => cluster?.dispose());

test('the store opens with a server away, and ends if that returns and syncs late', async () => {
  const options = { ...clusterOptions(cluster), replicas: 3 as const };
  const before = await openNatsStore(options);
  const { kind } = await before.put('hosts.a', bytes('one'), 'absent');
  expect(kind).toBe('ok');
  await before.close();

  await cluster.kill([away]);
  const store = await openNatsStore(options);
  expect(store.survivesPowerLoss).toBe('yes');
  expect((await store.put('hosts.b', bytes('two'), 'absent')).kind).toBe('ok');

  await cluster.setSyncAlways(away, false);
  await cluster.startAll();
  await expect
    .poll(() => store.get('hosts.a').catch((error: unknown) => error), { timeout: SEEN_WITHIN_MS })
    .toMatchObject({ code: 'durabilityUnproven', message: expect.stringContaining(away) });
  await expect(openNatsStore(options)).rejects.toMatchObject({ code: 'durabilityUnproven' });
});
