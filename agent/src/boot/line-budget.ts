/** Keeps a flood on the network from becoming a flood in the log. */
import type { Clock } from '@rackwright/platform';

const troubleLinesPerMinuteMax = 30;

/**
 * Lets through at most `linesMax` lines in each period and counts the rest, so that the first line
 * of a later period can say how many are missing.
 */
export class LineBudget {
  readonly #clock: Clock;
  readonly #linesMax: number;
  readonly #periodMs: number;
  #periodStartMs: number;
  #written = 0;
  #suppressed = 0;

  constructor(clock: Clock, linesMax: number, periodMs: number) {
    this.#clock = clock;
    this.#linesMax = linesMax;
    this.#periodMs = periodMs;
    this.#periodStartMs = clock.nowMs();
  }

  /** Calls `write` with the number of lines left out since the last one, or leaves this one out. */
  spend(write: (suppressed: number) => void): void {
    const nowMs = this.#clock.nowMs();
    const elapsedMs = nowMs - this.#periodStartMs;
    if (elapsedMs < 0 || elapsedMs >= this.#periodMs) {
      this.#periodStartMs = nowMs;
      this.#written = 0;
    }
    if (this.#written >= this.#linesMax) {
      this.#suppressed += 1;
      return;
    }
    this.#written += 1;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    write(suppressed);
  }
}

/** For lines about what others send, which they can repeat as often as they like. */
export function troubleBudget(clock: Clock): LineBudget {
  return new LineBudget(clock, troubleLinesPerMinuteMax, 60_000);
}
