/**
 * Deadlines that are postponed far more often than they are missed, such as those of transfers. All
 * of them share one timer. To postpone one costs neither a timer nor a clock read.
 *
 * D1 A deadline is missed at the first tick at or after it, never before it.
 * D2 A busy process does not catch up on late ticks: packets that have arrived meanwhile are
 *    handled first. So nothing is repeated that was answered in time.
 * D3 Without a deadline there is no timer.
 */
import type { Cancel, Clock } from '@rackwright/platform';

/** One that can be put off again and again; that it was missed ends it, until it is set again. */
export interface Deadline {
  /** `delayMs` from now, in place of the earlier deadline. */
  set(delayMs: number): void;
  /** It is not missed any more; setting it again does nothing. */
  end(): void;
}

interface Entry {
  /** The tick at which it is missed; infinite: none. */
  tick: number;
  readonly onMissed: () => void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #entries = new Set<Entry>();
  #tick = 0;
  #cancel: Cancel | undefined;

  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  add(onMissed: () => void): Deadline {
    const entry: Entry = { tick: Number.POSITIVE_INFINITY, onMissed };
    this.#entries.add(entry);
    this.#cancel ??= this.#clock.after(this.#tickMs, () => this.#passTick());
    return {
      set: (delayMs) => {
        // The tick that is under way counts for nothing: most of it may be over (D1).
        entry.tick = this.#tick + 1 + Math.ceil(delayMs / this.#tickMs);
      },
      end: () => {
        this.#entries.delete(entry);
        if (this.#entries.size > 0) return;
        this.#cancel?.();
        this.#cancel = undefined;
      },
    };
  }

  #passTick(): void {
    this.#tick += 1;
    this.#cancel = this.#clock.after(this.#tickMs, () => this.#passTick());
    for (const entry of this.#entries) {
      if (entry.tick > this.#tick) continue;
      entry.tick = Number.POSITIVE_INFINITY;
      entry.onMissed();
    }
  }
}
