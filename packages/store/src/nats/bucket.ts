/**
 * The bucket: a file stream laid out as a NATS key-value bucket, with exactly the settings that the
 * contract needs. Settings are read back, never assumed: a server drops unknown ones.
 *
 * B1 Nothing removes a live value: no age, no count, no size limit, no message deletion.
 * B2 Reads are answered by the stream's leader: `allow_direct` is off.
 * B3 The incarnation is in the stream's settings and in the bucket. A bucket made anew has another;
 *    values copied into another bucket do not match and are refused.
 */
import {
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { type Random, randomId } from '@rackwright/platform';
import {
  asStoreIncarnation,
  asWriteId,
  HISTORY_PER_KEY,
  type StoreIncarnation,
} from '../contract.ts';
import { StoreError } from '../errors.ts';
import { RESERVED_FIRST_SEGMENT } from '../key.ts';
import { decideWrite } from '../write.ts';
import type { BucketChannel } from './channel.ts';
import { isNameInUse, isStreamNotFound } from './failures.ts';
import { streamName, subjectOf } from './message.ts';

const INCARNATION_METADATA = 'rackwright_incarnation';
/** A driver's own key; `checkKey` refuses it to everyone else. */
const INCARNATION_KEY = `${RESERVED_FIRST_SEGMENT}.incarnation`;

const BUCKET_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws `wrongConfiguration`. */
export function checkBucketName(bucket: string): void {
  if (BUCKET_NAME.test(bucket)) return;
  throw new StoreError(
    'wrongConfiguration',
    `bucket name ${JSON.stringify(bucket)} is not 1 to 64 of A-Z a-z 0-9 _ -`,
  );
}

/** The settings of a stream that carries a bucket. */
function neededSettings(bucket: string, replicas: number) {
  return {
    subjects: [subjectOf(bucket, '>')],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    max_age: 0,
    max_msgs: -1,
    max_bytes: -1,
    max_msgs_per_subject: HISTORY_PER_KEY,
    num_replicas: replicas,
    allow_direct: false,
    deny_delete: true,
  };
}

/** The settings that differ from the contract's needs, as "name is x, needs y". */
export function wrongSettings(config: StreamConfig, bucket: string, replicas: number): string[] {
  const needed = { ...neededSettings(bucket, replicas), sealed: false };
  const wrong: string[] = [];
  for (const [name, need] of Object.entries(needed)) {
    const have = config[name as keyof StreamConfig];
    if (JSON.stringify(have) === JSON.stringify(need)) continue;
    wrong.push(`${name} is ${JSON.stringify(have)}, needs ${JSON.stringify(need)}`);
  }
  for (const name of ['mirror', 'sources', 'subject_transform', 'republish'] as const) {
    if (config[name] !== undefined && config[name] !== null) wrong.push(`${name} must not be set`);
  }
  return wrong;
}

/** The incarnation that a stream's settings bear, or undefined. */
export function incarnationOf(config: StreamConfig): StoreIncarnation | undefined {
  const found = config.metadata?.[INCARNATION_METADATA];
  return found === undefined ? undefined : asStoreIncarnation(found);
}

/** Finds or makes the stream. Throws the server's error. */
export async function openStream(
  manager: JetStreamManager,
  bucket: string,
  replicas: number,
  random: Random,
): Promise<StreamInfo> {
  const name = streamName(bucket);
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
  }
  try {
    return await manager.streams.add({
      name,
      ...neededSettings(bucket, replicas),
      metadata: { [INCARNATION_METADATA]: randomId(random) },
    });
  } catch (error) {
    if (!isNameInUse(error)) throw error;
    // Another opener was faster; its incarnation counts.
    return manager.streams.info(name);
  }
}

/** Throws `wrongConfiguration`. */
export function checkStream(info: StreamInfo, bucket: string, replicas: number): void {
  const wrong = wrongSettings(info.config, bucket, replicas);
  if (incarnationOf(info.config) === undefined) wrong.push('it bears no incarnation');
  if (wrong.length === 0) return;
  throw new StoreError(
    'wrongConfiguration',
    `bucket ${bucket} cannot be used as a store: ${wrong.join('; ')}`,
  );
}

/**
 * Makes sure that stream and bucket bear the same incarnation, and returns it. Throws
 * `incarnationMismatch`, and other errors for failures that may be retried.
 */
export async function settleIncarnation(
  manager: JetStreamManager,
  channel: BucketChannel,
  config: StreamConfig,
  restored: { readonly random: Random } | undefined,
): Promise<StoreIncarnation> {
  const inSettings = incarnationOf(config) ?? asStoreIncarnation('');
  const wanted =
    restored === undefined ? inSettings : asStoreIncarnation(randomId(restored.random));
  const writeId = asWriteId(wanted);
  const value = new TextEncoder().encode(wanted);
  const last = await channel.last(INCARNATION_KEY);
  if (last === undefined || restored !== undefined) {
    const outcome = await channel.publish(INCARNATION_KEY, value, last?.revision ?? 0, writeId);
    if (outcome.kind === 'uncertain') throw new Error(outcome.reason);
  }
  const stored = await channel.last(INCARNATION_KEY);
  if (decideWrite(stored, 'absent', writeId).kind !== 'landed') {
    const found = stored?.kind === 'put' ? new TextDecoder().decode(stored.value) : 'none';
    throw new StoreError(
      'incarnationMismatch',
      `the bucket holds values of incarnation ${found}, its stream is ${inSettings}: it was ` +
        'restored or copied; open it as restored',
    );
  }
  if (wanted === inSettings) return wanted;
  const metadata = { ...config.metadata, [INCARNATION_METADATA]: wanted };
  await manager.streams.update(config.name, { ...config, metadata });
  return wanted;
}
