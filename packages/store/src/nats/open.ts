/** Opens the NATS driver: the bucket is used only once the servers have proved durable writes. */

import { setTimeout as delay } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { errorText } from '@rackwright/platform';
import type { NatsConnection } from 'nats';
import { RETENTION_DEFAULT, type StateStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { checkBucketName, checkStream, openStream, settleIncarnation } from './bucket.ts';
import { BucketChannel } from './channel.ts';
import { connectToServers } from './connect.ts';
import {
  checkDurability,
  type DurabilityVerdict,
  gatherFacts,
  holderOf,
  judgeDurability,
  mayComeToPass,
} from './durability.ts';
import { LogChannel, openLog } from './entries.ts';
import { MessageChannel } from './messages.ts';
import {
  ATTEMPT_TIMEOUT_DEFAULT_MS,
  BUCKET_DEFAULT,
  CALL_TIMEOUT_DEFAULT_MS,
  type NatsStoreOptions,
  REPLICAS_DEFAULT,
  RETRY_LONGEST_MS,
  retryDelayMs,
} from './options.ts';
import { NatsStore } from './store.ts';
import { openTimeline } from './timeline.ts';

/**
 * Opens or creates the bucket. Throws `unavailable`, `serverTooOld`, `wrongConfiguration`,
 * `durabilityUnproven`, `incarnationMismatch`.
 */
export async function openNatsStore(options: NatsStoreOptions): Promise<StateStore> {
  checkBucketName(options.bucket ?? BUCKET_DEFAULT);
  const connection = await connectToServers(options);
  try {
    return await openOn(connection, options);
  } catch (error) {
    await connection.close();
    if (error instanceof StoreError) throw error;
    throw new StoreError('unavailable', `opening the store failed: ${errorText(error)}`, error);
  }
}

async function openOn(connection: NatsConnection, options: NatsStoreOptions): Promise<StateStore> {
  const bucket = options.bucket ?? BUCKET_DEFAULT;
  const replicas = options.replicas ?? REPLICAS_DEFAULT;
  const callTimeoutMs = options.callTimeoutMs ?? CALL_TIMEOUT_DEFAULT_MS;
  const timeout = options.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_DEFAULT_MS;
  const client = jetstream(connection, { timeout });
  const manager = await jetstreamManager(connection, { timeout, checkAPI: false });
  const channel = new BucketChannel(bucket, client, manager, timeout);
  const patiently = <T>(ask: () => Promise<T>) => retried(ask, callTimeoutMs);

  const info = await patiently(() => openStream(manager, bucket, replicas, options.random));
  checkStream(info, bucket, replicas);
  const checkServers = (provenBefore?: readonly string[]) =>
    proveDurability(connection, channel, replicas, options, provenBefore);
  const durability = await settled(() => patiently(checkServers), callTimeoutMs);
  const isAccepted = options.acceptUnprovenDurability === true;
  if (!isAccepted) checkDurability(durability);
  const restored = options.restored === true ? { random: options.random } : undefined;
  const incarnation = await patiently(() =>
    settleIncarnation(manager, channel, info.config, restored),
  );
  const { retention = RETENTION_DEFAULT } = options;
  channel.useTimeline(
    await patiently(() => openTimeline(manager, bucket, incarnation, replicas, retention)),
  );
  await patiently(() => openLog(manager, bucket, replicas, retention));
  return new NatsStore({
    connection,
    client,
    channel,
    log: new LogChannel(bucket, client, manager, timeout),
    messages: new MessageChannel(bucket, client, manager, replicas, timeout),
    incarnation,
    durability,
    ...(isAccepted ? {} : { checkServers }),
    callTimeoutMs,
    random: options.random,
  });
}

async function proveDurability(
  connection: NatsConnection,
  channel: BucketChannel,
  replicas: number,
  options: NatsStoreOptions,
  provenBefore: readonly string[] = [],
): Promise<DurabilityVerdict> {
  const { cluster } = await channel.info();
  // Without a cluster the only holder is the server that we talk to.
  const leader = cluster?.leader ?? connection.info?.server_name ?? '';
  const followers = (cluster?.replicas ?? []).map(holderOf);
  const holders = [{ name: leader, isOffline: false }, ...followers];
  if (leader === '' || holders.length < replicas) {
    throw new Error(`the bucket has ${holders.length} of ${replicas} replicas so far`);
  }
  const { facts, failures } = await gatherFacts(options);
  return judgeDurability(facts, holders, provenBefore, failures);
}

/** Looks again for a while: a server that has just gone still counts as present. */
async function settled(
  check: () => Promise<DurabilityVerdict>,
  withinMs: number,
): Promise<DurabilityVerdict> {
  const until = performance.now() + withinMs;
  for (;;) {
    const verdict = await check();
    if (!mayComeToPass(verdict) || performance.now() > until) return verdict;
    await delay(RETRY_LONGEST_MS);
  }
}

/** Repeats a call after failures that may pass: a cluster that has no leader yet. */
async function retried<T>(ask: () => Promise<T>, withinMs: number): Promise<T> {
  const until = performance.now() + withinMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof StoreError || performance.now() > until) throw error;
      await delay(retryDelayMs(attempt));
    }
  }
}
