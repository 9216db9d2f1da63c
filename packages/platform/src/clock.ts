/** Cancels the scheduled call; calling it twice, or after it ran, does nothing. */
export type Cancel = () => void;

/**
 * Time as the programs see it. Two clocks, because they answer different questions: `nowMs` is
 * wall time (certificates, stored deadlines) and may step; `suspendAwareMs` only grows and counts
 * suspended time (work leases, DESIGN R11).
 */
export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. May step in either direction. */
  nowMs(): number;
  /** Monotonic milliseconds since an arbitrary start, counting suspend (CLOCK_BOOTTIME). */
  suspendAwareMs(): number;
  /** Runs `callback` once, `delayMs` (≥ 0) from now. */
  after(delayMs: number, callback: () => void): Cancel;
}
