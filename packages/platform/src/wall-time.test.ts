import { expect, test } from 'vitest';
import { atWallTime } from './wall-time.ts';

/** Wall time that is set by hand, and the scheduled timers. */
function byHand() {
  const clock = { nowMs: 0 };
  const timers: { delayMs: number; run: () => void; isCancelled: boolean }[] = [];
  const asClock = {
    nowMs: () => clock.nowMs,
    after: (delayMs: number, run: () => void) => {
      const timer = { delayMs, run, isCancelled: false };
      timers.push(timer);
      return () => {
        timer.isCancelled = true;
      };
    },
  };
  return { asClock, clock, timers };
}

test('the alarm comes at its wall time, and checks often enough to notice a step', () => {
  const { asClock, clock, timers } = byHand();
  let acts = 0;
  atWallTime(asClock, 90 * 86_400_000, () => (acts += 1));
  expect(timers.map(({ delayMs }) => delayMs)).toEqual([600_000]);
  clock.nowMs = 90 * 86_400_000 - 5;
  timers[0]?.run();
  expect(timers[1]?.delayMs).toBe(5);
  clock.nowMs += 4;
  timers[1]?.run();
  expect([acts, timers[2]?.delayMs]).toEqual([0, 1]);
  clock.nowMs += 1;
  timers[2]?.run();
  expect([acts, timers.length]).toEqual([1, 3]);
});

test('an alarm in the past comes at once; cancel ends the current timer', () => {
  const { asClock, timers } = byHand();
  let acts = 0;
  atWallTime(asClock, 0, () => (acts += 1));
  expect([acts, timers.length]).toEqual([1, 0]);
  const cancel = atWallTime(asClock, 1_000_000, () => (acts += 1));
  timers[0]?.run();
  cancel();
  expect(timers.at(-1)?.isCancelled).toBe(true);
});
