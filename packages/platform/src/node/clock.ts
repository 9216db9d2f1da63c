/**
 * The real clock.
 *
 * C1 `suspendAwareMs` never goes back and counts suspended time.
 * C2 `after` honours delays of any length; Node's own timers fire at once above 2^31 - 1 ms.
 */
import { uptime } from 'node:os';
import type { Cancel, Clock } from '../clock.ts';

/** Longest delay that one Node timer can hold, milliseconds. */
const timerDelayMsMax = 2 ** 31 - 1;

/**
 * `uptime()` is read from /proc/uptime, which is cut to hundredths of a second. A lead of the boot
 * clock over the monotonic one smaller than this is that cut, not a suspend. Milliseconds.
 */
const uptimeGrainMs = 20;

/**
 * Running time for which one reading of the uptime counts. A suspend within it may be missed by a
 * reading of this clock, as one right after the reading would be. Milliseconds.
 */
const uptimeKeptMs = 1;

/** The machine's clocks; replaced in tests of C1. Both in milliseconds. */
export interface ClockSources {
  /** CLOCK_MONOTONIC: fine, but stands still while the machine is suspended. */
  readonly monotonicMs: () => number;
  /** CLOCK_BOOTTIME: counts suspend, coarse. */
  readonly uptimeMs: () => number;
}

const machineSources: ClockSources = {
  monotonicMs: () => Number(process.hrtime.bigint() / 1_000n) / 1_000,
  uptimeMs: () => uptime() * 1_000,
};

/**
 * Time of this machine. Node's `process.hrtime` and `performance.now` are CLOCK_MONOTONIC, which
 * on Linux leaves suspended time out; Node does not expose CLOCK_BOOTTIME but through
 * /proc/uptime. So `suspendAwareMs` is the monotonic clock plus the largest lead of uptime over
 * it that was ever seen: fine-grained between suspends, and right by 20 ms after one. The file is
 * read once per millisecond at most, for each store call is timed by this clock, and reading it
 * costs as much as a store call.
 *
 * `after` runs on CLOCK_MONOTONIC: a timer set before a suspend fires late by the suspended time.
 */
export function nodeClock(sources: ClockSources = machineSources): Clock {
  let readAtMs = sources.monotonicMs();
  let leadMs = sources.uptimeMs() - readAtMs;
  return {
    nowMs: () => Date.now(),
    suspendAwareMs: () => {
      const monotonicMs = sources.monotonicMs();
      if (monotonicMs - readAtMs < uptimeKeptMs) return monotonicMs + leadMs;
      readAtMs = monotonicMs;
      const seenLeadMs = sources.uptimeMs() - monotonicMs;
      if (seenLeadMs > leadMs + uptimeGrainMs) leadMs = seenLeadMs;
      return monotonicMs + leadMs;
    },
    after,
  };
}

function after(delayMs: number, callback: () => void): Cancel {
  if (!(delayMs >= 0)) throw new RangeError(`delayMs must be 0 or more, got ${delayMs}`);
  let timer: NodeJS.Timeout | undefined;
  const arm = (remainingMs: number): void => {
    if (remainingMs > timerDelayMsMax) {
      timer = setTimeout(() => arm(remainingMs - timerDelayMsMax), timerDelayMsMax);
    } else {
      timer = setTimeout(callback, remainingMs);
    }
  };
  arm(delayMs);
  return () => clearTimeout(timer);
}
