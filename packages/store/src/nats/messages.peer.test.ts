/**
 * Published messages are in a stream that any client consumes: once, in order, under their subject.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from 'nats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { publishedBeside } from '../testing/published.ts';
import { eventSubject, eventsName } from './messages.ts';
import { openNatsStore } from './open.ts';
import { clusterOptions } from './subject.ts';

let cluster: NatsCluster | undefined;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  cluster = await NatsCluster.start({ servers: 1, syncAlways: true });
});

afterAll(() => cluster?.dispose());

test('a message is in the stream once, however often it was published', async ({ skip }) => {
  if (cluster === undefined) return skip(serverMissing());
  const bucket = 'published';
  const store = await openNatsStore(clusterOptions(cluster, bucket));
  const message = (id: string, word: string) => ({
    ...{ id, words: ['run-ended', 'hosts', word], contentType: 'application/cloudevents+json' },
    value: new TextEncoder().encode(`{"id":"${id}"}`),
  });
  for (const id of ['i_1_0', 'i_2_0', 'i_1_0']) await store.publish?.(message(id, 'h1'));
  const found = await publishedBeside(cluster.addresses, bucket);
  const subject = `rackwright.events.${bucket}.run-ended.hosts.h1`;
  const contentType = 'application/cloudevents+json';
  expect(found).toEqual([
    { subject, contentType, text: '{"id":"i_1_0"}' },
    { subject, contentType, text: '{"id":"i_2_0"}' },
  ]);
  const connection = await connect({ servers: [...cluster.addresses] });
  try {
    const manager = await jetstreamManager(connection);
    const { config } = await manager.streams.info(eventsName(bucket));
    expect(config.subjects).toEqual([eventSubject(bucket, ['>'])]);
    expect([config.max_age > 0, config.max_bytes > 0]).toEqual([true, true]);
    // A stream that was removed is made again by the second attempt.
    await manager.streams.delete(eventsName(bucket));
    await store.publish?.(message('i_3_0', 'h2'));
    expect((await manager.streams.info(eventsName(bucket))).state.messages).toBe(1);
  } finally {
    await connection.close();
    await store.close();
  }
});

test('a text that is no token of a subject is refused', async ({ skip }) => {
  if (cluster === undefined) return skip(serverMissing());
  const store = await openNatsStore(clusterOptions(cluster, 'refused'));
  const value = Uint8Array.of(1);
  const publish = async (words: readonly string[], id = 'i') =>
    store.publish?.({ words, id, value, contentType: 'text/plain' });
  await expect(publish(['a.b'])).rejects.toThrow('a.b');
  await expect(publish(['*'])).rejects.toThrow('*');
  await expect(publish(['a'], 'an id')).rejects.toThrow('an id');
  await store.close();
});
