import { type Clock, pause } from '@rackwright/platform';
import { type BmcFailed, type BmcResult, type BmcTransient, transient } from './driver.ts';

/** How long and how often an asserted state is read back. */
export interface ReadBackTimings {
  /**
   * BMCs show a switched power state up to 11 s late (measured with an emulator that imitates
   * them); after this long the state counts as not applied.
   */
  readonly windowMs: number;
  readonly pollMs: number;
}

export const defaultReadBackTimings: ReadBackTimings = { windowMs: 16_000, pollMs: 1_000 };

/** How long a machine that was just switched on may take to apply settings of its firmware. */
export const defaultSettleTimings: ReadBackTimings = { windowMs: 900_000, pollMs: 10_000 };

/**
 * Reads until `holds` or the window is over; answers the last reading. At least one reading is
 * made after the window has passed, so that a slow BMC is not judged by an early one.
 */
export async function readUntil<T>(
  clock: Clock,
  timings: ReadBackTimings,
  read: () => Promise<BmcResult<T>>,
  holds: (value: T) => boolean,
  signal?: AbortSignal,
): Promise<BmcResult<T>> {
  const endMs = clock.suspendAwareMs() + timings.windowMs;
  for (;;) {
    const startedMs = clock.suspendAwareMs();
    const reading = await read();
    if (reading.kind === 'ok' && holds(reading.value)) return reading;
    if (signal?.aborted === true) return cancelledWhileReading();
    if (startedMs >= endMs) return reading;
    await pause(clock, timings.pollMs, signal);
  }
}

/** After these answers to an order only the read-back can tell whether it was carried out. */
export function mayHaveHappened(refusal: BmcFailed | BmcTransient): boolean {
  if (refusal.kind === 'failed') return refusal.afterSending === true;
  return refusal.reason === 'unreachable' || refusal.reason === 'trouble';
}

function cancelledWhileReading(): BmcResult<never> {
  return transient('cancelled', 'the call was given up while the state was being read back');
}
