/** Timers of wall time, which may be set, and may be further away than one timer carries. */
import type { Cancel, Clock } from './clock.ts';

/** Timers are set no further than this, so that a step of the wall clock is noticed. */
const recheckMs = 600_000;

/** Calls `act` once when wall time has reached `atMs`; within this call when it is past. */
export function atWallTime(
  clock: Pick<Clock, 'nowMs' | 'after'>,
  atMs: number,
  act: () => void,
): Cancel {
  let cancel: Cancel = () => undefined;
  const arm = (): void => {
    const leftMs = atMs - clock.nowMs();
    if (leftMs <= 0) act();
    else cancel = clock.after(Math.min(leftMs, recheckMs), arm);
  };
  arm();
  return () => cancel();
}
