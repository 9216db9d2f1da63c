/**
 * All sinks of this process: follows their records, and delivers to each one that is not paused.
 *
 * Must not: be awaited by other parts. A sink that hangs costs only its own window.
 */
import type { EventSink, SinkUid } from '@rackwright/messages';
import { store as wire } from '@rackwright/messages';
import type { Entry, StoreRevision } from '@rackwright/store';
import { FilterError, parseFilter } from '../../filter/index.ts';
import { type FollowedValues, followValues, type StoreFollower } from '../../following/index.ts';
import { deleteRecord, idOfKey, readableRecordOf, readRecord } from '../../records/index.ts';
import { eventFields } from '../event-fields.ts';
import { cursorKey, sinkUidOf } from './cursor.ts';
import { deadLettersOf } from './dead-letters.ts';
import { publishTimeoutMs, sendToNats } from './nats.ts';
import { type DeliveredSink, SinkWorker, type WorkerParts } from './sink-worker.ts';
import { requestTimeoutMs, sendToWebhook, type WebhookSender } from './webhook.ts';

/** The kinds of sinks, as metrics name them. */
export const sinkTargets = ['webhook', 'nats'] as const;
export type SinkTarget = (typeof sinkTargets)[number];

/** The results of an attempt, as metrics name them. */
export const attemptResults = ['delivered', 'failed', 'dead'] as const;
export type EventMeter = (target: SinkTarget, result: (typeof attemptResults)[number]) => void;

export interface EventSinksParts extends WorkerParts {
  readonly following: StoreFollower;
  readonly meter: EventMeter;
  /** Missing: this control plane makes no outgoing calls. */
  readonly webhooks?: WebhookSender | undefined;
}

interface RunningSink {
  readonly revision: StoreRevision;
  readonly target: SinkTarget;
  readonly worker: SinkWorker;
  readonly stop: () => void;
  readonly ended: Promise<void>;
}

export class EventSinks {
  readonly #parts: EventSinksParts;
  readonly #followed: FollowedValues;
  readonly #running = new Map<string, RunningSink>();
  #isStopped = false;

  constructor(parts: EventSinksParts) {
    this.#parts = parts;
    const { following } = parts;
    this.#followed = followValues(following, 'eventSinks', (key, entry) =>
      this.#changed(key, entry),
    );
  }

  start(): Promise<void> {
    return this.#followed.start();
  }

  stop(): void {
    this.#isStopped = true;
    this.#followed.stop();
    for (const { stop } of this.#running.values()) stop();
  }

  /** Resolves once nothing is being sent; to be called after `stop`. */
  async ended(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  /** The age of the oldest waiting event of each kind of sink, milliseconds; 0: none waits. */
  lagMs(target: SinkTarget): number {
    const nowMs = this.#parts.clock.nowMs();
    let lag = 0;
    for (const each of this.#running.values()) {
      const sinceMs = each.target === target ? each.worker.waitingSinceMs : undefined;
      if (sinceMs !== undefined) lag = Math.max(lag, nowMs - sinceMs);
    }
    return lag;
  }

  #changed(key: string, entry: Entry | undefined): void {
    const before = this.#running.get(key);
    // After a broken watch the listing repeats known sinks.
    if (before !== undefined && before.revision === entry?.revision) return;
    before?.stop();
    this.#running.delete(key);
    if (this.#isStopped) return;
    if (entry === undefined) return;
    const { revision } = entry;
    const record = readableRecordOf(this.#parts, wire.EventSinkRecordSchema, entry);
    const sink = record?.eventSink;
    if (record === undefined || sink === undefined) return;
    const delivered = this.#delivered(key, record, sink);
    if (delivered === undefined) return;
    const stopping = new AbortController();
    const worker = new SinkWorker(this.#parts, delivered.sink, stopping.signal);
    // One after the other: otherwise both would own the same cursor.
    const ended = (before?.ended ?? Promise.resolve()).then(() => worker.run());
    const stop = () => stopping.abort();
    this.#running.set(key, { revision, target: delivered.target, worker, stop, ended });
  }

  /** Undefined: nothing is delivered to it. */
  #delivered(
    key: string,
    { beginRevision }: wire.EventSinkRecord,
    eventSink: EventSink,
  ): { readonly target: SinkTarget; readonly sink: DeliveredSink } | undefined {
    const { log, meter, webhooks } = this.#parts;
    const sinkId = idOfKey(key);
    const { spec } = eventSink;
    const uid = sinkUidOf(eventSink);
    if (spec === undefined || spec.paused) return undefined;
    const begin = Number(beginRevision);
    try {
      const filter = parseFilter(spec.filter, eventFields);
      switch (spec.target.case) {
        case 'webhook': {
          const { value } = spec.target;
          if (webhooks === undefined) return undefined;
          const sink: DeliveredSink = {
            ...{ sinkId, uid, begin, filter, attemptMs: requestTimeoutMs },
            send: (event, signal) => sendToWebhook(webhooks, value, event, signal),
            meter: (result) => meter('webhook', result),
          };
          return { target: 'webhook', sink };
        }
        case 'nats': {
          const { store } = this.#parts;
          if (store.publish === undefined) return undefined;
          const sink: DeliveredSink = {
            ...{ sinkId, uid, begin, filter, attemptMs: publishTimeoutMs },
            send: (event) => sendToNats(store, event),
            meter: (result) => meter('nats', result),
          };
          return { target: 'nats', sink };
        }
        case undefined:
          log.warn({ sink: sinkId }, 'this version does not know the kind of the sink');
          return undefined;
      }
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      log.warn({ sink: sinkId }, 'this version does not know the filter of the sink', error);
      return undefined;
    }
  }
}

/** Removes the remaining records of a deleted sink. May be repeated. Throws `unavailable`. */
export async function forgetSink(
  { store }: Pick<WorkerParts, 'store'>,
  uid: SinkUid,
): Promise<void> {
  for (const { key, revision } of await deadLettersOf(store, uid)) {
    await deleteRecord({ store }, key, revision);
  }
  const cursor = await readRecord(store, wire.EventCursorRecordSchema, cursorKey(uid));
  if (cursor !== undefined) await deleteRecord({ store }, cursorKey(uid), cursor.revision);
}
