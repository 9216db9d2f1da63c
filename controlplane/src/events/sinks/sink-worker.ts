/**
 * Delivers to one sink: follows the store from its cursor, sends the matching events, and advances
 * the cursor.
 *
 * Invariants:
 * 1. The cursor passes an event once it is delivered or stored as a dead letter. After a crash the
 *    events in between are delivered again, and none is lost.
 * 2. Memory is bounded for any receiver: events without room wait in the store.
 * 3. No writer of the store waits for this.
 */
import { clone } from '@bufbuild/protobuf';
import {
  type Event,
  GapReason,
  type SinkId,
  type SinkUid,
  store as wire,
} from '@rackwright/messages';
import { type Log, pause } from '@rackwright/platform';
import type { StoreRevision } from '@rackwright/store';
import type { Filter } from '../../filter/index.ts';
import { deleteRecord, isStoreUnavailable, writeRecord } from '../../records/index.ts';
import { gapOf, type TracedEvent } from '../derive/derive.ts';
import { isWanted } from '../event-fields.ts';
import { eventFeed } from '../feed.ts';
import { type CursorParts, type OwnedCursor, takeCursor } from './cursor.ts';
import { deadLetterOf, deadLettersMax, deadLettersOf, storeDeadLetter } from './dead-letters.ts';
import { type DeliveryAttempt, DeliveryWindow, type PendingEvent } from './window.ts';

/** A sink, in the form for delivery. */
export interface DeliveredSink {
  readonly sinkId: SinkId;
  readonly uid: SinkUid;
  readonly begin: StoreRevision;
  readonly filter: Pick<Filter<TracedEvent>, 'matches'>;
  /** Ends early when the signal aborts. */
  readonly send: (event: Event, signal: AbortSignal) => Promise<DeliveryAttempt>;
  /** Longest time of one attempt. */
  readonly attemptMs: number;
  /** Called with the result of each attempt. */
  readonly meter: (result: 'delivered' | 'failed' | 'dead') => void;
}

export interface WorkerParts extends CursorParts {
  readonly log: Log;
  /** Pause after a failure of the store. */
  readonly retryDelayMs: number;
}

/** The cursor is written this long after it has advanced, with all later progress. */
const writeAfterMs = 1_000;

export class SinkWorker {
  readonly #parts: WorkerParts;
  readonly #sink: DeliveredSink;
  readonly #signal: AbortSignal;
  #delivery: Delivery | undefined;

  constructor(parts: WorkerParts, sink: DeliveredSink, signal: AbortSignal) {
    this.#parts = parts;
    this.#sink = sink;
    this.#signal = signal;
  }

  /** Since when the oldest undelivered event has waited in this process; undefined: none waits. */
  get waitingSinceMs(): number | undefined {
    return this.#delivery?.waitingSinceMs;
  }

  /** Ends once the signal has aborted, and never rejects. */
  async run(): Promise<void> {
    const { clock, log, retryDelayMs } = this.#parts;
    const { sinkId: sink } = this.#sink;
    while (!this.#signal.aborted) {
      try {
        await this.#deliverOnce();
      } catch (error) {
        if (!isStoreUnavailable(error))
          log.warn({ sink }, 'events are not delivered; it is tried again', error);
        await pause(clock, retryDelayMs, this.#signal);
      }
    }
  }

  /** Runs until the signal aborts, or another replica has taken the cursor. */
  async #deliverOnce(): Promise<void> {
    const { clock } = this.#parts;
    const { uid, begin } = this.#sink;
    const taken = await takeCursor(this.#parts, uid, begin);
    if (taken.kind === 'elsewhere') {
      await pause(clock, Math.max(0, taken.untilMs - clock.nowMs()), this.#signal);
      return;
    }
    const stopping = new AbortController();
    const stop = () => stopping.abort();
    this.#signal.addEventListener('abort', stop, { once: true });
    if (this.#signal.aborted) stop();
    const delivery = new Delivery(this.#parts, this.#sink, taken.cursor, stopping.signal);
    this.#delivery = delivery;
    try {
      if (taken.restored) delivery.addRestored();
      await delivery.run();
    } finally {
      stop();
      this.#signal.removeEventListener('abort', stop);
      this.#delivery = undefined;
      await delivery.end();
    }
  }
}

/** Delivery during one ownership of the cursor. */
class Delivery {
  readonly #parts: WorkerParts;
  readonly #sink: DeliveredSink;
  readonly #cursor: OwnedCursor;
  readonly #signal: AbortSignal;
  readonly #window: DeliveryWindow;
  readonly #attempts = new Set<Promise<void>>();
  #wake: () => void = () => undefined;
  #isWoken = false;
  #broken: unknown;
  #isBroken = false;
  #roomed: () => void = () => undefined;

  constructor(parts: WorkerParts, sink: DeliveredSink, cursor: OwnedCursor, signal: AbortSignal) {
    this.#parts = parts;
    this.#sink = sink;
    this.#cursor = cursor;
    this.#signal = signal;
    this.#window = new DeliveryWindow(cursor.positions);
    const stop = () => {
      this.#roomed();
      this.#ring();
    };
    signal.addEventListener('abort', stop, { once: true });
  }

  get waitingSinceMs(): number | undefined {
    return this.#window.oldestMs;
  }

  /** The store was restored since the cursor was written. */
  addRestored(): void {
    const { store } = this.#parts;
    const change = { key: 'fleet', revision: this.#cursor.positions.since };
    const gap = gapOf(store.incarnation, change, GapReason.RESTORED);
    this.#window.add('fleet', [gap], undefined, this.#parts.clock.nowMs());
  }

  async run(): Promise<void> {
    void this.#guarded(this.#pull());
    void this.#guarded(this.#replay());
    while (!this.#signal.aborted && !this.#cursor.isLost) {
      if (this.#isBroken) throw this.#broken;
      this.#send();
      await this.#keep();
      await this.#sleep();
    }
  }

  /** Requests in progress are awaited, so that the cursor is released only after their end. */
  async end(): Promise<void> {
    await Promise.all(this.#attempts);
    this.#noteMoved();
    await this.#cursor.release().catch((error: unknown) => {
      // Another replica takes the cursor when its ownership is over.
      const { sinkId: sink } = this.#sink;
      if (!isStoreUnavailable(error))
        this.#parts.log.warn({ sink }, 'the cursor cannot be released', error);
    });
  }

  #ring(): void {
    this.#isWoken = true;
    this.#wake();
  }

  async #guarded(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#broken = error;
      this.#isBroken = true;
      this.#ring();
    }
  }

  /** Takes changes from the store while there is room. */
  async #pull(): Promise<void> {
    const { store, clock } = this.#parts;
    const { filter } = this.#sink;
    for await (const change of eventFeed(store, this.#cursor.positions, this.#signal)) {
      const wanted = change.events.filter((event) => isWanted(filter, event));
      this.#window.add(change.collection, wanted, change.upTo, clock.nowMs());
      this.#ring();
      while (!this.#window.hasRoom && !this.#signal.aborted) await this.#room();
    }
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#roomed = resolve;
    });
  }

  #send(): void {
    const { clock } = this.#parts;
    while (!this.#signal.aborted && this.#cursor.mayLast(this.#sink.attemptMs)) {
      const pending = this.#window.take(clock.nowMs());
      if (pending === undefined) return;
      const attempt = this.#attempt(pending).catch((error: unknown) => {
        this.#broken = error;
        this.#isBroken = true;
      });
      this.#attempts.add(attempt);
      void attempt.then(() => {
        this.#attempts.delete(attempt);
        this.#roomed();
        this.#ring();
      });
    }
  }

  async #attempt(pending: PendingEvent): Promise<void> {
    const { clock } = this.#parts;
    const { send, meter } = this.#sink;
    const attempted = await send(pending.event.event, this.#signal);
    meter(attempted.kind === 'delivered' ? 'delivered' : 'failed');
    this.#note(attempted);
    const verdict = this.#window.attempted(pending, attempted, clock.nowMs());
    if (verdict === 'giveUp' && attempted.kind !== 'delivered') {
      await this.#giveUp(pending, attempted.problem);
    }
  }

  async #giveUp(pending: PendingEvent, problem: string): Promise<void> {
    const { store, clock, log } = this.#parts;
    const { uid, sinkId: sink, meter } = this.#sink;
    const { event } = pending.event;
    const { attempts } = pending.lane;
    const delivery = { event, attempts, problem, atMs: clock.nowMs() };
    if (await storeDeadLetter(store, uid, delivery)) {
      meter('dead');
      log.warn({ sink, event: event.id }, `the event is a dead letter: ${problem}`);
      this.#window.settle(pending);
      return;
    }
    const full = `it has ${deadLettersMax} dead letters: replay them, or drop them`;
    this.#noteProblem(full);
    this.#window.putOff(pending, clock.nowMs());
  }

  #note(attempted: DeliveryAttempt): void {
    const nowMs = this.#parts.clock.nowMs();
    if (attempted.kind !== 'delivered') {
      this.#noteProblem(attempted.problem);
      return;
    }
    this.#cursor.note({ lastDeliveryMs: nowMs });
    if (this.#cursor.standstill !== undefined) this.#cursor.note({ standstill: undefined });
  }

  #noteProblem(problem: string): void {
    const { clock, log } = this.#parts;
    const before = this.#cursor.standstill;
    if (before === undefined) {
      log.warn({ sink: this.#sink.sinkId }, `an event did not arrive: ${problem}`);
    } else if (before.problem === problem) return;
    this.#cursor.note({ standstill: { problem, sinceMs: before?.sinceMs ?? clock.nowMs() } });
  }

  #noteMoved(): void {
    const { positions } = this.#window;
    if (positions !== this.#cursor.positions) this.#cursor.note({ positions });
  }

  #writtenMs = Number.NEGATIVE_INFINITY;

  /** Writes the cursor, at a bounded rate. */
  async #keep(): Promise<void> {
    const { clock } = this.#parts;
    this.#noteMoved();
    const nowMs = clock.suspendAwareMs();
    if (!this.#cursor.isDue || nowMs - this.#writtenMs < writeAfterMs) return;
    this.#writtenMs = nowMs;
    await this.#cursor.write();
  }

  /** Waits for an event or a time. */
  async #sleep(): Promise<void> {
    const { clock, store } = this.#parts;
    if (this.#isWoken || this.#signal.aborted) {
      this.#isWoken = false;
      return;
    }
    const nowMs = clock.nowMs();
    const waits = [
      ...(this.#cursor.isDue ? [writeAfterMs] : []),
      ...(store.isShared ? [writeAfterMs * 10] : []),
      ...[this.#window.nextMs()].flatMap((atMs) => (atMs === undefined ? [] : [atMs - nowMs])),
    ];
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    // A due event that cannot be taken goes when another one ends, which wakes this loop.
    const wait = Math.min(...waits.map((each) => Math.max(each, 100)));
    const cancel = Number.isFinite(wait) ? clock.after(wait, () => this.#wake()) : () => undefined;
    await woken;
    cancel();
    this.#isWoken = false;
  }

  /** Dead letters that a person wants to deliver again, one at a time. */
  async #replay(): Promise<void> {
    const { store } = this.#parts;
    const { uid, send, meter } = this.#sink;
    for (const entry of await deadLettersOf(store, uid)) {
      const record = deadLetterOf(store, entry);
      if (!record.replay || record.event === undefined) continue;
      if (this.#signal.aborted || !this.#cursor.mayLast(this.#sink.attemptMs)) return;
      const attempted = await send(record.event, this.#signal);
      meter(attempted.kind === 'delivered' ? 'delivered' : 'failed');
      if (attempted.kind === 'delivered') {
        await deleteRecord({ store }, entry.key, entry.revision);
        continue;
      }
      const next = clone(wire.DeadLetterRecordSchema, record);
      next.replay = false;
      next.problem = attempted.problem;
      next.attempts += 1;
      await writeRecord({ store }, wire.DeadLetterRecordSchema, entry.key, next, entry.revision);
    }
  }
}
