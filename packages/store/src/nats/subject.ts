/** The NATS driver as the conformance suite sees it: a fresh bucket on a cluster that is shared. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { nodeRandom } from '@rackwright/platform/node';
import {
  type CaseNeeds,
  type StoreUnderTest,
  TESTED_AGE_MS,
  testedRetention,
} from '../conformance/subject.ts';
import type { NatsCluster } from '../testing/nats-cluster.ts';
import { connectToServers } from './connect.ts';
import { openNatsStore } from './open.ts';
import type { NatsStoreOptions } from './options.ts';

/** Elections on a loaded machine take long; a store that needs longer has failed. */
const CALL_TIMEOUT_MS = 40_000;
const DELETE_TIMEOUT_MS = 10_000;
const DELETE_ATTEMPTS = 6;
/** Long enough for a case's writes and reads, short enough to be waited for. */
const SHORT_AGE_MS = 20_000;

export function clusterOptions(
  cluster: NatsCluster,
  bucket = `t-${randomBytes(6).toString('hex')}`,
): NatsStoreOptions {
  return {
    servers: cluster.addresses,
    random: nodeRandom(),
    bucket,
    replicas: cluster.names.length === 3 ? 3 : 1,
    durability: { kind: 'monitors', urls: cluster.monitors },
    callTimeoutMs: CALL_TIMEOUT_MS,
    retention: testedRetention(TESTED_AGE_MS),
  };
}

/**
 * Deletes all streams of the bucket: each one left costs its servers heartbeats for as long as they
 * run, and time at each of their starts. A request to a cluster that elects may stay without an
 * answer, so each is sent again after a while; a stream that is gone by then is not listed.
 */
async function deleteStreams(options: NatsStoreOptions): Promise<void> {
  const connection = await connectToServers(options);
  try {
    const settings = { timeout: DELETE_TIMEOUT_MS, checkAPI: false };
    const manager = await jetstreamManager(connection, settings);
    const deleteAll = async (attemptsLeft: number): Promise<void> => {
      try {
        const { bucket = '' } = options;
        for await (const name of manager.streams.names()) {
          if (name.includes(bucket)) await manager.streams.delete(name);
        }
      } catch (error) {
        if (attemptsLeft === 0) throw error;
        await deleteAll(attemptsLeft - 1);
      }
    };
    await deleteAll(DELETE_ATTEMPTS - 1);
  } finally {
    await connection.close();
  }
}

/** Two handles, as two control planes have; a crash kills every server. */
export async function natsUnderTest(
  cluster: NatsCluster,
  { growsOld }: CaseNeeds = {},
): Promise<StoreUnderTest> {
  const retention = testedRetention(growsOld === true ? SHORT_AGE_MS : TESTED_AGE_MS);
  const options = { ...clusterOptions(cluster), retention };
  const open = () => openNatsStore(options);
  const subject: StoreUnderTest = {
    first: await open(),
    second: await open(),
    async crash() {
      await cluster.kill();
      await Promise.all([subject.first.close(), subject.second.close()]);
      await cluster.startAll();
      subject.first = await open();
      subject.second = await open();
    },
    async restore() {
      await Promise.all([subject.first.close(), subject.second.close()]);
      subject.first = await openNatsStore({ ...options, restored: true });
      subject.second = await open();
    },
    wait: (delayMs) => delay(delayMs),
    growOld: () => delay(SHORT_AGE_MS + 1_000),
    async dispose() {
      await Promise.all([subject.first.close(), subject.second.close()]);
      await deleteStreams(options);
    },
  };
  return subject;
}
