/**
 * The log of the NATS driver: a file stream of its own, bounded by age. It outlives the bucket's
 * incarnations, because a restore does not undo past actions.
 *
 * E1 Positions are the stream's sequence numbers; only age removes an entry, so the kept ones are a
 *    range without holes.
 * E2 An entry that is added again under its id within `DUPLICATES_MS` is the existing one.
 */

import {
  type JetStreamClient,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream';
import { errorText } from '@rackwright/platform';
import type { Retention } from '../contract.ts';
import type { AppendResult, LogEntry, LogPage } from '../entry-log.ts';
import { retryDelayMs } from './options.ts';
import { nanos, openAgingStream } from './timeline.ts';

const DUPLICATES_MS = 120_000;
const ID_HEADER = 'Nats-Msg-Id';
/** Entries that are read at the same time. */
const READS_MAX = 64;

export function logName(bucket: string): string {
  return `LOG_${bucket}`;
}

function logSubject(bucket: string): string {
  return `rackwright.log.${bucket}`;
}

/** Finds or makes the stream. Throws the server's error. */
export async function openLog(
  manager: JetStreamManager,
  bucket: string,
  replicas: number,
  { logAgeMs }: Retention,
): Promise<void> {
  await openAgingStream(manager, {
    name: logName(bucket),
    subjects: [logSubject(bucket)],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    max_age: nanos(logAgeMs),
    duplicate_window: nanos(Math.min(DUPLICATES_MS, logAgeMs)),
    num_replicas: replicas,
    allow_direct: false,
    deny_delete: true,
    deny_purge: true,
  });
}

/** The parts for adding an entry, beside the servers. */
export interface AppendPath {
  pause(delayMs: number): Promise<void>;
  /** Whether there is time for another attempt. */
  hasTime(): boolean;
}

export class LogChannel {
  readonly #bucket: string;
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #attemptTimeoutMs: number;

  constructor(
    bucket: string,
    client: JetStreamClient,
    manager: JetStreamManager,
    attemptTimeoutMs: number,
  ) {
    this.#bucket = bucket;
    this.#client = client;
    this.#manager = manager;
    this.#attemptTimeoutMs = attemptTimeoutMs;
  }

  /** Repeats under the same id, so that the entry is stored once (E2). */
  async append(id: string, value: Uint8Array, path: AppendPath): Promise<AppendResult> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const stored = await this.#client.publish(logSubject(this.#bucket), value, {
          msgID: id,
          timeout: this.#attemptTimeoutMs,
          expect: { streamName: logName(this.#bucket) },
        });
        return { kind: 'ok', position: stored.seq };
      } catch (error) {
        if (!path.hasTime()) return { kind: 'unknown', reason: errorText(error) };
        await path.pause(retryDelayMs(attempt));
      }
    }
  }

  /** Throws the client's error. */
  async back(limit: number, before = Number.MAX_SAFE_INTEGER): Promise<LogPage> {
    const { state } = await this.#manager.streams.info(logName(this.#bucket));
    const first = Math.max(state.first_seq, 1);
    const newest = Math.min(state.last_seq, before - 1);
    const oldest = Math.max(first, newest - limit + 1);
    const entries: LogEntry[] = [];
    for (let high = newest; high >= oldest; high -= READS_MAX) {
      const low = Math.max(oldest, high - READS_MAX + 1);
      const positions = Array.from({ length: high - low + 1 }, (_, at) => high - at);
      const found = await Promise.all(positions.map((position) => this.#at(position)));
      for (const entry of found) if (entry !== undefined) entries.push(entry);
    }
    return { entries, more: oldest > first };
  }

  /** Undefined when it has gone by age meanwhile. */
  async #at(position: number): Promise<LogEntry | undefined> {
    const message = await this.#manager.streams.getMessage(logName(this.#bucket), {
      seq: position,
    });
    if (message === null) return undefined;
    const id = message.header?.get(ID_HEADER) ?? '';
    return { position, id, value: message.data, atMs: message.time.getTime() };
  }
}
