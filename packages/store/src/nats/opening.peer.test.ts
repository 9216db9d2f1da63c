/** What the NATS driver accepts and refuses, against a real server. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { nodeRandom } from '@rackwright/platform/node';
import { connect } from 'nats';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { NatsCluster, SYSTEM_USER, serverMissing } from '../testing/nats-cluster.ts';
import { streamName } from './message.ts';
import { openNatsStore } from './open.ts';
import { clusterOptions } from './subject.ts';
import { timelineName } from './timeline.ts';

let durable: NatsCluster;
let late: NatsCluster;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  durable = await NatsCluster.start({ servers: 1, syncAlways: true });
  late = await NatsCluster.start({ servers: 1, syncAlways: false });
});

beforeEach((context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
});

afterAll(async () => {
  await durable?.dispose();
  await late?.dispose();
});

/** Another program's access to the same servers. */
async function asAnother(cluster: NatsCluster) {
  const connection = await connect({ servers: cluster.addresses });
  const manager = await jetstreamManager(connection);
  return { connection, manager, client: jetstream(connection) };
}

test('the store proves durability by the monitors', async () => {
  const store = await openNatsStore(clusterOptions(durable));
  expect(store.survivesPowerLoss).toBe('yes');
  await store.close();
});

test('the store opens once its timeline follows, so that no first changes are lost', async () => {
  const options = clusterOptions(durable);
  const store = await openNatsStore(options);
  const { connection, manager } = await asAnother(durable);
  const { sources } = await manager.streams.info(
    timelineName(options.bucket ?? '', store.incarnation),
  );
  // -1 until the server has made the consumer that the changes come by.
  expect(sources?.map(({ active }) => active >= 0)).toEqual([true]);
  await connection.close();
  await store.close();
});

test('the store proves durability by the system account', async () => {
  const durability = { kind: 'systemAccount', ...SYSTEM_USER } as const;
  const store = await openNatsStore({ ...clusterOptions(durable), durability });
  expect(store.survivesPowerLoss).toBe('yes');
  await store.close();
});

test('servers of unproved durability are refused, or opened as unknown', async () => {
  const { durability: _unused, ...unproved } = clusterOptions(durable);
  const refused = openNatsStore(unproved);
  await expect(refused).rejects.toMatchObject({
    code: 'durabilityUnproven',
    message: expect.stringMatching(/n1/),
  });
  const store = await openNatsStore({ ...unproved, acceptUnprovenDurability: true });
  expect(store.survivesPowerLoss).toBe('unknown');
  await store.close();
});

test('the store takes a wrong system password and a dead monitor as no proof', async () => {
  for (const durability of [
    { kind: 'systemAccount', user: SYSTEM_USER.user, password: 'wrong' },
    { kind: 'monitors', urls: ['http://127.0.0.1:9'] },
  ] as const) {
    const refused = openNatsStore({ ...clusterOptions(durable), durability });
    await expect(refused).rejects.toMatchObject({ code: 'durabilityUnproven' });
  }
});

test('a server that syncs late is refused, or reported as not durable if accepted', async () => {
  const options = clusterOptions(late);
  const refused = openNatsStore(options);
  await expect(refused).rejects.toMatchObject({
    code: 'durabilityUnproven',
    message: expect.stringMatching(/sync_interval: always/),
  });
  const store = await openNatsStore({ ...options, acceptUnprovenDurability: true });
  expect(store.survivesPowerLoss).toBe('no');
  await store.close();
});

test('the store refuses a server below the floor at once, whatever is accepted', async () => {
  const old = createServer((socket) => {
    const said = { server_id: 'X', server_name: 'old', version: '2.9.10', max_payload: 1048576 };
    socket.write(`INFO ${JSON.stringify({ ...said, headers: true, proto: 1 })}\r\n`);
    socket.on('data', (sent) => {
      if (sent.includes('PING')) socket.write('PONG\r\n');
    });
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(old, 'listening');
  const address = old.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const refused = openNatsStore({
    servers: [`127.0.0.1:${port}`],
    random: nodeRandom(),
    acceptUnprovenDurability: true,
  });
  await expect(refused).rejects.toMatchObject({
    code: 'serverTooOld',
    message: expect.stringMatching(/old .*2\.9\.10/),
  });
  old.close();
});

test('the error says so if no server answers', async () => {
  const refused = openNatsStore({ servers: ['127.0.0.1:9'], random: nodeRandom() });
  await expect(refused).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/127\.0\.0\.1:9/),
  });
});

test('the store refuses a bucket that would let values go, naming each wrong setting', async () => {
  const { connection, client } = await asAnother(durable);
  const options = clusterOptions(durable);
  await new Kvm(client).create(options.bucket ?? '', { ttl: 60_000, history: 5 });
  const refused = openNatsStore(options);
  await expect(refused).rejects.toMatchObject({ code: 'wrongConfiguration' });
  await expect(refused).rejects.toThrow(/max_age is 60000000000.*max_msgs_per_subject is 5/);
  await expect(refused).rejects.toThrow(/allow_direct is true.*no incarnation/);
  await connection.close();
});

test('the store refuses a bucket with another number of replicas, and a bad name', async () => {
  const options = clusterOptions(durable);
  await (await openNatsStore(options)).close();
  const three = openNatsStore({ ...options, replicas: 3 });
  await expect(three).rejects.toThrow(/num_replicas is 1, needs 3/);
  await expect(openNatsStore({ ...options, bucket: 'a.b' })).rejects.toThrow(/bucket name "a.b"/);
});

test('an ordinary key-value client reads the values of the store', async () => {
  const options = clusterOptions(durable);
  const store = await openNatsStore(options);
  const { connection, client } = await asAnother(durable);
  await store.put('hosts.a', bytes('one'), 'absent');
  const created = await store.put('hosts.b', bytes('two'), 'absent');
  await store.delete('hosts.b', created.kind === 'ok' ? created.revision : 0);
  const bucket = await new Kvm(client).open(options.bucket ?? '');
  const one = await bucket.get('hosts.a');
  expect(one?.string()).toBe('one');
  expect(one?.revision).toBe((await store.get('hosts.a')).revision);
  expect((await bucket.get('hosts.b'))?.operation).toBe('DEL');
  const foreign = await bucket.put('hosts.c', 'by another program');
  expect(await store.get('hosts.c')).toMatchObject({
    kind: 'found',
    writeId: `foreign-${foreign}`,
  });
  await connection.close();
  await store.close();
});

test('the store gives two openers at once one and the same incarnation', async () => {
  const options = clusterOptions(durable);
  const stores = await Promise.all([1, 2, 3, 4].map(() => openNatsStore(options)));
  expect(new Set(stores.map((store) => store.incarnation)).size).toBe(1);
  for (const store of stores) await store.close();
});

test('a recreated bucket is a new incarnation, and old handles end', async () => {
  const options = clusterOptions(durable);
  const before = await openNatsStore(options);
  await before.put('hosts.a', bytes('one'), 'absent');
  const { connection, manager } = await asAnother(durable);
  await manager.streams.delete(streamName(options.bucket ?? ''));
  const after = await openNatsStore(options);
  expect(after.incarnation).not.toBe(before.incarnation);
  expect((await after.get('hosts.a')).kind).toBe('absent');
  await expect(before.list('')).rejects.toMatchObject({ code: 'incarnationChanged' });
  await expect(before.get('hosts.a')).rejects.toMatchObject({ code: 'incarnationChanged' });
  await after.close();
  await connection.close();
});

test('the store ends a waiting watch when the bucket is replaced under it', async () => {
  const options = clusterOptions(durable);
  const store = await openNatsStore(options);
  const watching = (async () => {
    for await (const _ of store.watch(0, '')) continue;
  })();
  const ended = expect(watching).rejects.toMatchObject({ code: 'incarnationChanged' });
  await store.put('hosts.a', bytes('one'), 'absent');
  const { connection, manager } = await asAnother(durable);
  await manager.streams.delete(streamName(options.bucket ?? ''));
  await ended;
  await connection.close();
});

test('the store opens a restored bucket as a new incarnation whose revisions go on', async () => {
  const options = clusterOptions(durable);
  const before = await openNatsStore(options);
  await before.put('hosts.a', bytes('one'), 'absent');
  const revision = await before.latestRevision();
  await before.close();
  const after = await openNatsStore({ ...options, restored: true });
  expect(after.incarnation).not.toBe(before.incarnation);
  expect(await after.latestRevision()).toBeGreaterThan(revision);
  await after.close();
  const again = await openNatsStore(options);
  expect(again.incarnation).toBe(after.incarnation);
  await again.close();
});

test('the timeline continues under another age; a restored bucket begins a new one', async () => {
  const retention = { historyPrefixes: ['hosts'], historyAgeMs: 3_600_000, logAgeMs: 3_600_000 };
  const options = { ...clusterOptions(durable), retention };
  let store = await openNatsStore(options);
  const written = 80;
  let revision: number | 'absent' = 'absent';
  for (let at = 0; at < written; at += 1) {
    const put = await store.put('hosts.a', bytes(`${at}`), revision);
    revision = put.kind === 'ok' ? put.revision : revision;
  }
  const whole = async () => (await store.historyBackwards('hosts.a', 256)).changes.length;
  await expect.poll(whole).toBe(written);
  await store.log.append('e1', bytes('x'));
  await store.close();
  const longer = { ...retention, historyAgeMs: 7_200_000, logAgeMs: 7_200_000 };
  store = await openNatsStore({ ...options, retention: longer });
  expect(await whole()).toBe(written);
  await store.close();
  store = await openNatsStore({ ...options, restored: true });
  const { changes, before } = await store.historyBackwards('hosts.a', 256);
  expect([changes.length, before.kind]).toEqual([64, 'gone']);
  expect((await store.log.back(10)).entries.map(({ id }) => id)).toEqual(['e1']);
  await store.close();
});

test('values copied into another bucket are refused until it is opened as restored', async () => {
  const options = clusterOptions(durable);
  await (await openNatsStore(options)).close();
  const { connection, manager } = await asAnother(durable);
  const { config } = await manager.streams.info(streamName(options.bucket ?? ''));
  const metadata = { ...config.metadata, rackwright_incarnation: 'f'.repeat(32) };
  await manager.streams.update(config.name, { ...config, metadata });
  const refused = openNatsStore(options);
  await expect(refused).rejects.toMatchObject({
    code: 'incarnationMismatch',
    message: expect.stringMatching(/restored/),
  });
  const store = await openNatsStore({ ...options, restored: true });
  await store.close();
  await connection.close();
});
