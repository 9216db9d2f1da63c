/**
 * The changes that a watch and a follower of keys get, from healthy servers and from one that lags.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type JetStreamClient, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from 'nats';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { bytes, revisionOf } from '../conformance/subject.ts';
import type { StateStore } from '../contract.ts';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { GapGuard } from '../write.ts';
import { BucketChannel } from './channel.ts';
import { subjectsUnder } from './message.ts';
import { openNatsStore } from './open.ts';
import { clusterOptions } from './subject.ts';
import { followKeys, type KeyChange, SILENCE_MS, type WatchPath, watchStream } from './watching.ts';

const bucket = 'watched';
const attemptTimeoutMs = 2_000;
/** The factor by which the silence of a consumer is noticed faster than in production. */
const haste = 10;

let cluster: NatsCluster;
let connection: NatsConnection;
let store: StateStore;

beforeAll(async () => {
  if (serverMissing() === undefined) {
    cluster = await NatsCluster.start({ servers: 1, syncAlways: false });
  }
});

beforeEach(async (context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
  const options = { ...clusterOptions(cluster, bucket), acceptUnprovenDurability: true };
  store = await openNatsStore(options);
  connection = await connect({ servers: [...cluster.addresses] });
});

afterEach(async () => {
  const manager = await jetstreamManager(connection);
  await store.close();
  await manager.streams.delete(`KV_${bucket}`);
  await connection.close();
});

afterAll(() => cluster?.dispose());

async function pathWith(client: JetStreamClient): Promise<WatchPath> {
  const channel = new BucketChannel(
    bucket,
    client,
    await jetstreamManager(connection),
    attemptTimeoutMs,
  );
  return {
    ...{ client, bucket, over: () => false, whenDisturbed: () => () => {} },
    read: () => store.latestRevision(),
    firstOf: (subject, from) => channel.firstOf(subject, from),
    pause: (delayMs, signal) => delay(delayMs / haste, undefined, signal && { signal }),
  };
}

/** Its first consumer lives, and never has a message for its client. */
function firstConsumerSilent(): { readonly client: JetStreamClient; readonly made: () => number } {
  const client = jetstream(connection);
  let made = 0;
  const get: JetStreamClient['consumers']['get'] = (stream, wanted) => {
    made += 1;
    const other = { filter_subjects: subjectsUnder(bucket, 'nothing.of.anybody') };
    return client.consumers.get(stream, made === 1 ? { ...(wanted as object), ...other } : wanted);
  };
  const silent = { consumers: { get } } as JetStreamClient;
  return { client: silent, made: () => made };
}

test('a watch creates its consumer again when that stays behind although it is alive', async () => {
  const { client, made } = firstConsumerSilent();
  const from = await store.latestRevision();
  const told: string[] = [];
  const watching = (async () => {
    for await (const event of watchStream(await pathWith(client), from, 'hosts')) {
      if (event.kind === 'put') told.push(event.key);
      if (told.length === 2) break;
    }
  })();
  await store.put('hosts.a', bytes('1'), 'absent');
  await store.put('racks.r', bytes('1'), 'absent');
  await store.put('hosts.b', bytes('1'), 'absent');
  await watching;
  expect(told).toEqual(['hosts.a', 'hosts.b']);
  expect(made()).toBe(2);
});

test('a watch keeps its consumer when there is nothing to tell under its prefix', async () => {
  const client = jetstream(connection);
  let made = 0;
  const get: JetStreamClient['consumers']['get'] = (...asked) => {
    made += 1;
    return client.consumers.get(...asked);
  };
  const from = await store.latestRevision();
  const path = await pathWith({ consumers: { get } } as JetStreamClient);
  const first = (async () => {
    for await (const event of watchStream(path, from, 'hosts')) return event;
    return undefined;
  })();
  // Changes of another key say nothing about this watch.
  await store.put('racks.r', bytes('1'), 'absent');
  await delay((SILENCE_MS * 3) / haste);
  await store.put('hosts.a', bytes('1'), 'absent');
  expect(await first).toMatchObject({ kind: 'put', key: 'hosts.a' });
  expect(made).toBe(1);
});

test('a follower of keys hears when it has heard of all', async () => {
  const revision = revisionOf(await store.put('hosts.a', bytes('1'), 'absent'));
  await store.put('hosts.b', bytes('1'), 'absent');
  await store.put('hosts.a', bytes('2'), revision);
  const told: KeyChange[] = [];
  for await (const change of followKeys(await pathWith(jetstream(connection)))) {
    told.push(change);
    if (change.revision === revision + 2) break;
  }
  expect(told.map(({ key, isWhole }) => [key, isWhole])).toEqual([
    ['_store.incarnation', false],
    ['hosts.b', false],
    ['hosts.a', true],
  ]);
});

test('a watch that has caught up remembers no key of before', async () => {
  const follows = vi.spyOn(GapGuard.prototype, 'follows');
  onTestFinished(() => follows.mockRestore());
  const from = await store.latestRevision();
  const watch = watchStream(await pathWith(jetstream(connection)), from, 'hosts');
  const keysOf = new Map<unknown, Set<string>>();
  for (let n = 0; n < 20; n += 1) {
    const next = watch.next();
    await store.put(`hosts.h${n}`, bytes('1'), 'absent');
    expect((await next).value).toMatchObject({ kind: 'put', key: `hosts.h${n}` });
  }
  for (const [at, guard] of follows.mock.contexts.entries()) {
    const key = follows.mock.calls[at]?.[0].key ?? '';
    keysOf.set(guard, (keysOf.get(guard) ?? new Set<string>()).add(key));
  }
  expect(Math.max(...[...keysOf.values()].map(({ size }) => size))).toBeLessThan(5);
  await watch.return(undefined);
});
