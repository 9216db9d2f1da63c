/**
 * Keeps refusals from filling the audit stream: some refusals of each caller are recorded per
 * minute, and the rest are counted.
 *
 * Invariants:
 * 1. Every refusal is recorded or counted, and every count is recorded: with the caller's next
 *    refusal, or when its minute is over.
 * 2. Memory is bounded: callers beyond `callersMax` share one counter.
 */
import type { Cancel, Clock } from '@rackwright/platform';
import type { AuditEvent } from './event.ts';

/** Refusals of one caller for a missing right that are recorded in a minute, each. */
const refusalsPerMinuteMax = 60;
/** The same for permitted calls that failed: many hosts are asked at once. */
const failuresPerMinuteMax = 600;
const minuteMs = 60_000;
/** Callers that are distinguished in a minute. */
const callersMax = 1_024;
const others = ' others';

interface Minute {
  count: number;
  unlisted: number;
  /** The last event that is only counted. */
  last: AuditEvent | undefined;
  readonly cancel: Cancel;
}

/** See the header. */
export class RefusalBound {
  readonly #clock: Clock;
  readonly #record: (event: AuditEvent) => void;
  readonly #minutes = new Map<string, Minute>();

  constructor(clock: Clock, record: (event: AuditEvent) => void) {
    this.#clock = clock;
    this.#record = record;
  }

  /** Records the event, or counts it; `caller` distinguishes callers. */
  note(caller: string, event: AuditEvent): void {
    const isFailure = event.kind === 'request';
    const own = isFailure ? `${caller} failed` : caller;
    const isShared = !this.#minutes.has(own) && this.#minutes.size >= callersMax;
    const account = isShared ? others : own;
    const minute = this.#minutes.get(account) ?? this.#begin(account);
    minute.count += 1;
    if (minute.count <= (isFailure ? failuresPerMinuteMax : refusalsPerMinuteMax)) {
      this.#record(event);
      return;
    }
    minute.unlisted += 1;
    minute.last = event;
  }

  /** Records every count. */
  close(): void {
    for (const account of [...this.#minutes.keys()]) this.#end(account);
  }

  #begin(account: string): Minute {
    const cancel = this.#clock.after(minuteMs, () => this.#end(account));
    const minute: Minute = { count: 0, unlisted: 0, last: undefined, cancel };
    this.#minutes.set(account, minute);
    return minute;
  }

  /** Invariant 1: the last event is recorded for all. */
  #end(account: string): void {
    const minute = this.#minutes.get(account);
    this.#minutes.delete(account);
    minute?.cancel();
    if (minute?.last === undefined) return;
    const more = minute.unlisted - 1;
    const text = more > 0 ? ` (${more} more before it are not listed)` : '';
    this.#record({ ...minute.last, message: `${minute.last.message ?? ''}${text}` });
  }
}
