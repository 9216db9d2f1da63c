/**
 * The events in delivery to one sink: which one goes next, what follows a failure, and the position
 * that is reached. Pure, apart from its own state.
 *
 * Invariants:
 * 1. For each subject one event is in delivery at a time, in the order of addition.
 * 2. A position is reached when everything before it is delivered or given up. Deliveries beyond it
 *    may be repeated, never omitted.
 * 3. An event is given up only while the receiver works: it refuses this particular event, or
 *    repeatedly fails at it while it accepts others. While the receiver is down, everything waits.
 * 4. Bounded: at most `windowEventsMax` events wait here.
 */
import { backoffDelayMs } from '@rackwright/results';
import type { StoreRevision } from '@rackwright/store';
import type { EventCollection, TracedEvent } from '../derive/derive.ts';
import { advancePositions, type Positions } from '../positions.ts';

export const windowEventsMax = 256;
/** Events in delivery at once. */
export const atOnceMax = 4;
/** After this many failures in a row the receiver counts as away: one event at a time is tried. */
const awayAfterFailures = 3;
/**
 * The most attempts of one event that a receiver refuses, or fails at while it does not count as
 * away.
 */
const refusalsMax = 3;
const strikesMax = 8;
const firstPauseMs = 1_000;
const eventPauseMsMax = 300_000;
const awayPauseMsMax = 60_000;
/** The longest pause that a receiver may request. */
const askedPauseMsMax = 600_000;

/** The result of one attempt. */
export type DeliveryAttempt =
  | { readonly kind: 'delivered' }
  /** The receiver works, and refuses this event. */
  | { readonly kind: 'refused'; readonly problem: string }
  /** Whether it arrived is unknown; `pauseMs`: as requested by the receiver. */
  | { readonly kind: 'failed'; readonly problem: string; readonly pauseMs?: number };

/** One event that waits or is in delivery. */
export interface PendingEvent {
  readonly event: TracedEvent;
  /** When it was added. */
  readonly sinceMs: number;
  readonly lane: Lane;
  readonly track: Track;
}

/** The events of one subject, oldest first. */
interface Lane {
  readonly subject: string;
  readonly queue: PendingEvent[];
  isUnderWay: boolean;
  attempts: number;
  strikes: number;
  notBeforeMs: number;
}

/** One change, or several completed ones: `left` of its events are not settled. */
interface Track {
  readonly collection: EventCollection;
  upTo: StoreRevision | undefined;
  left: number;
}

export class DeliveryWindow {
  /** By subject, in the order of the attempts. */
  readonly #lanes = new Map<string, Lane>();
  readonly #tracks = new Map<EventCollection, Track[]>();
  #positions: Positions;
  #waiting = 0;
  #underWay = 0;
  #failures = 0;
  #awayUntilMs = 0;

  constructor(from: Positions) {
    this.#positions = from;
  }

  /** The reached positions (2). */
  get positions(): Positions {
    return this.#positions;
  }

  /** Whether another change may be added. */
  get hasRoom(): boolean {
    return this.#waiting < windowEventsMax;
  }

  /** Events that wait or are in delivery. */
  get waiting(): number {
    return this.#waiting;
  }

  /** When the oldest of them was added; undefined: none waits. */
  get oldestMs(): number | undefined {
    let oldest: number | undefined;
    for (const { queue } of this.#lanes.values()) {
      const sinceMs = queue[0]?.sinceMs;
      if (sinceMs !== undefined) oldest = Math.min(oldest ?? sinceMs, sinceMs);
    }
    return oldest;
  }

  /** Whether the receiver counts as away. */
  get isAway(): boolean {
    return this.#failures >= awayAfterFailures;
  }

  /** Adds one change with its events for this sink; there may be none. */
  add(
    collection: EventCollection,
    events: readonly TracedEvent[],
    upTo: StoreRevision | undefined,
    nowMs: number,
  ): void {
    const tracks = this.#tracks.get(collection) ?? [];
    this.#tracks.set(collection, tracks);
    const last = tracks.at(-1);
    if (events.length === 0 && last?.left === 0) last.upTo = upTo ?? last.upTo;
    else tracks.push({ collection, upTo, left: events.length });
    const track = tracks.at(-1) as Track;
    for (const event of events) this.#enqueue({ event, track, sinceMs: nowMs });
    this.#drain(collection);
  }

  #enqueue(added: Omit<PendingEvent, 'lane'>): void {
    const { subject } = added.event.event;
    const lane = this.#lanes.get(subject) ?? {
      ...{ subject, queue: [], isUnderWay: false, attempts: 0, strikes: 0 },
      notBeforeMs: 0,
    };
    this.#lanes.set(subject, lane);
    lane.queue.push({ ...added, lane });
    this.#waiting += 1;
  }

  /** The next event to send, which is then in delivery. Undefined: none can go now. */
  take(nowMs: number): PendingEvent | undefined {
    if (this.#underWay >= (this.isAway ? 1 : atOnceMax)) return undefined;
    if (this.isAway && nowMs < this.#awayUntilMs) return undefined;
    for (const lane of this.#lanes.values()) {
      const [first] = lane.queue;
      if (lane.isUnderWay || first === undefined || lane.notBeforeMs > nowMs) continue;
      lane.isUnderWay = true;
      this.#underWay += 1;
      return first;
    }
    return undefined;
  }

  /** When the next event can go without another trigger; undefined: none waits for a time. */
  nextMs(): number | undefined {
    let next: number | undefined;
    for (const { isUnderWay, notBeforeMs } of this.#lanes.values()) {
      if (!isUnderWay) next = Math.min(next ?? notBeforeMs, notBeforeMs);
    }
    return next === undefined || !this.isAway ? next : Math.max(next, this.#awayUntilMs);
  }

  /**
   * The consequence of an attempt: `done`; `again` after a pause; or `giveUp`. After `giveUp` the
   * caller stores the dead letter and then calls `settle`, or `putOff` while it cannot be stored.
   */
  attempted(
    pending: PendingEvent,
    attempted: DeliveryAttempt,
    nowMs: number,
  ): 'done' | 'again' | 'giveUp' {
    const { lane } = pending;
    if (attempted.kind === 'delivered') {
      // Events that failed while the receiver was away are tried at once.
      if (this.isAway) for (const each of this.#lanes.values()) each.notBeforeMs = 0;
      this.#failures = 0;
      this.settle(pending);
      return 'done';
    }
    lane.attempts += 1;
    if (attempted.kind === 'refused') {
      this.#failures = 0;
      if (lane.attempts >= refusalsMax) return 'giveUp';
    } else {
      if (!this.isAway) lane.strikes += 1;
      this.#failures += 1;
      const { pauseMs = 0 } = attempted;
      const requestedMs = Math.min(pauseMs, askedPauseMsMax);
      this.#awayUntilMs = nowMs + Math.max(requestedMs, this.#awayPauseMs());
      if (lane.strikes >= strikesMax) return 'giveUp';
    }
    const pauseOfEvent = { attempt: lane.attempts, firstMs: firstPauseMs, key: lane.subject };
    this.#release(
      pending,
      nowMs + backoffDelayMs({ ...pauseOfEvent, delayMsMax: eventPauseMsMax }),
    );
    return 'again';
  }

  #awayPauseMs(): number {
    const attempt = Math.max(1, this.#failures - awayAfterFailures + 1);
    const delayMsMax = awayPauseMsMax;
    return backoffDelayMs({ attempt, firstMs: firstPauseMs, delayMsMax, key: 'away' });
  }

  /** It was given up and cannot be stored now: it is tried again, after a long pause. */
  putOff(pending: PendingEvent, nowMs: number): void {
    this.#release(pending, nowMs + eventPauseMsMax);
  }

  #release({ lane }: PendingEvent, notBeforeMs: number): void {
    lane.isUnderWay = false;
    lane.notBeforeMs = notBeforeMs;
    this.#underWay -= 1;
  }

  /** The event is finished: it was delivered, or stored as given up. */
  settle(pending: PendingEvent): void {
    const { lane, track } = pending;
    this.#release(pending, 0);
    lane.queue.shift();
    Object.assign(lane, { attempts: 0, strikes: 0 });
    this.#waiting -= 1;
    // At the end: a subject that changes all the time delays no other.
    this.#lanes.delete(lane.subject);
    if (lane.queue.length > 0) this.#lanes.set(lane.subject, lane);
    track.left -= 1;
    this.#drain(track.collection);
  }

  #drain(collection: EventCollection): void {
    const tracks = this.#tracks.get(collection) ?? [];
    let [first] = tracks;
    while (first !== undefined && first.left === 0) {
      const { upTo } = first;
      if (upTo !== undefined) this.#positions = advancePositions(this.#positions, collection, upTo);
      tracks.shift();
      [first] = tracks;
    }
    this.#join(tracks);
  }

  /** Completed changes after an open one are merged into one, so that their number is bounded. */
  #join(tracks: Track[]): void {
    for (let at = tracks.length - 1; at > 0; at -= 1) {
      const [before, after] = [tracks[at - 1], tracks[at]];
      if (before?.left !== 0 || after?.left !== 0) continue;
      before.upTo = after.upTo ?? before.upTo;
      tracks.splice(at, 1);
    }
  }
}
