/**
 * The timeline: a mirror of those of the bucket's changes that are kept by age. The bucket itself
 * has no age limit, because that would delete live values; the mirror has no limit by number, only
 * by age.
 *
 * T1 A change has the same revision in both, because a mirror keeps sequence numbers.
 * T2 A mirror belongs to one incarnation. A bucket that is made anew or opened as restored begins
 *    another mirror, because revisions of a lost range would be given again; the old mirror ages
 *    out.
 * T3 Without replicas the server repeats in a mirror the comparison of each write with the bucket,
 *    and then takes nothing (2.10.27). There the timeline sources the bucket, which drops the
 *    comparison; its messages have the revision in a header, and a binary search finds them.
 * T4 The store opens once the timeline has begun to follow the bucket. For a new timeline that
 *    takes up to seconds; in that time a key that changes often would lose changes. A timeline that
 *    has lost the bucket since, with a server, finds it again by itself. That takes longer than a
 *    start may, and programs that have opened the store write meanwhile.
 *
 * It follows a moment later. A change that has left the bucket before the timeline received it is a
 * gap, which `past` shows as the end of the kept changes.
 */
import {
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import type { Retention, StoreIncarnation } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { isNameInUse, isStreamNotFound } from './failures.ts';
import { streamName, subjectOf } from './message.ts';

const NANOS_PER_MS = 1_000_000;
/** Characters of the incarnation in the mirror's name. */
const INCARNATION_CHARS = 16;
/** The servers' value for the time since a mirror last heard from its origin, when it never did. */
const never = -1;

/** The mirror of a bucket's incarnation. */
export function timelineName(bucket: string, incarnation: StoreIncarnation): string {
  return `TIMELINE_${bucket}_${incarnation.slice(0, INCARNATION_CHARS)}`;
}

/** A duration as streams have it. */
export function nanos(durationMs: number): number {
  return durationMs * NANOS_PER_MS;
}

/** Finds or makes a stream, with the age that is wanted now. Throws the server's error. */
export async function openAgingStream(
  manager: JetStreamManager,
  wanted: Partial<StreamConfig> & { readonly name: string; readonly max_age: number },
): Promise<StreamInfo> {
  const found = await findOrAdd(manager, wanted);
  if (found.config.max_age === wanted.max_age) return found;
  return manager.streams.update(wanted.name, { ...found.config, max_age: wanted.max_age });
}

async function findOrAdd(
  manager: JetStreamManager,
  wanted: Partial<StreamConfig> & { readonly name: string },
): Promise<StreamInfo> {
  try {
    return await manager.streams.info(wanted.name);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
  }
  try {
    return await manager.streams.add(wanted);
  } catch (error) {
    if (!isNameInUse(error)) throw error;
    return manager.streams.info(wanted.name);
  }
}

/** The changes that have left the bucket. */
export interface Timeline {
  readonly name: string;
  /** T3: its sequence numbers are its own. */
  readonly isSourced: boolean;
}

/**
 * Opens the mirror; undefined when nothing is kept by age. Throws `wrongConfiguration`, and while
 * the mirror does not follow yet an error that may pass.
 */
export async function openTimeline(
  manager: JetStreamManager,
  bucket: string,
  incarnation: StoreIncarnation,
  replicas: number,
  retention: Retention,
): Promise<Timeline | undefined> {
  if (retention.historyPrefixes.length === 0) return undefined;
  const name = timelineName(bucket, incarnation);
  const subjects = retention.historyPrefixes.map((prefix) => subjectOf(bucket, `${prefix}.>`));
  const isSourced = replicas === 1;
  const origin = {
    name: streamName(bucket),
    subject_transforms: subjects.map((subject) => ({ src: subject, dest: subject })),
  };
  const info = await openAgingStream(manager, {
    name,
    ...(isSourced ? { sources: [origin] } : { mirror: origin, mirror_direct: false }),
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    max_age: nanos(retention.historyAgeMs),
    num_replicas: replicas,
    allow_direct: false,
    deny_delete: true,
  });
  const { config } = info;
  const followed = isSourced ? config.sources?.[0] : config.mirror;
  const mirrored = followed?.subject_transforms?.map(({ src }) => src) ?? [];
  const missing = subjects.filter((subject) => !mirrored.includes(subject));
  if (followed?.name !== streamName(bucket) || missing.length > 0) {
    throw new StoreError(
      'wrongConfiguration',
      `stream ${name} is no mirror of ${subjects.join(' and ')}; remove it, and it is made again`,
    );
  }
  if (!hasBegun(info)) throw new Error(`stream ${name} does not follow ${followed.name} yet`);
  return { name, isSourced };
}

/** Whether a timeline follows its bucket, or has (T4). */
export function hasBegun({
  state,
  mirror,
  sources,
}: Pick<StreamInfo, 'state' | 'mirror' | 'sources'>): boolean {
  const { active = never } = mirror ?? sources?.[0] ?? {};
  return active !== never || state.last_seq > 0;
}
