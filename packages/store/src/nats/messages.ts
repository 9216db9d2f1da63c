/**
 * The control plane's published messages: a file stream of its own, for every consumer with the
 * rights. It outlives the bucket's incarnations.
 *
 * M1 A message that is published again under its id within `DUPLICATES_MS` is there once.
 * M2 The stream is bounded by age and by size, its oldest messages go first: a late consumer has a
 *    gap in the sequence, and nothing here waits for a consumer.
 */
import {
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream';
import { headers } from 'nats';
import type { PublishedMessage } from '../contract.ts';
import { nanos, openAgingStream } from './timeline.ts';

const DUPLICATES_MS = 120_000;
const AGE_MS = 7 * 86_400_000;
const SIZE_BYTES_MAX = 1024 ** 3;

/** The stream of the messages that are published beside a bucket. */
export function eventsName(bucket: string): string {
  return `EVENTS_${bucket}`;
}

/** The subject of a message: every word in the alphabet of keys. */
export function eventSubject(bucket: string, words: readonly string[]): string {
  return ['rackwright', 'events', bucket, ...words].join('.');
}

export class MessageChannel {
  readonly #bucket: string;
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #replicas: number;
  readonly #attemptTimeoutMs: number;
  #opening: Promise<void> | undefined;

  constructor(
    bucket: string,
    client: JetStreamClient,
    manager: JetStreamManager,
    replicas: number,
    attemptTimeoutMs: number,
  ) {
    this.#bucket = bucket;
    this.#client = client;
    this.#manager = manager;
    this.#replicas = replicas;
    this.#attemptTimeoutMs = attemptTimeoutMs;
  }

  /** Resolves once the stream has it. Throws the client's error. */
  async publish(message: PublishedMessage): Promise<void> {
    this.#opening ??= this.#open();
    try {
      await this.#opening;
      await this.#send(message);
    } catch (error) {
      // Somebody may have removed the stream: the next one looks again.
      this.#opening = undefined;
      throw error;
    }
  }

  async #send({ words, id, value, contentType }: PublishedMessage): Promise<void> {
    const set = headers();
    set.set('content-type', contentType);
    await this.#client.publish(eventSubject(this.#bucket, words), value, {
      headers: set,
      msgID: id,
      timeout: this.#attemptTimeoutMs,
    });
  }

  async #open(): Promise<void> {
    await openAgingStream(this.#manager, {
      name: eventsName(this.#bucket),
      subjects: [eventSubject(this.#bucket, ['>'])],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      max_age: nanos(AGE_MS),
      max_bytes: SIZE_BYTES_MAX,
      duplicate_window: nanos(DUPLICATES_MS),
      num_replicas: this.#replicas,
      allow_direct: false,
    });
  }
}
