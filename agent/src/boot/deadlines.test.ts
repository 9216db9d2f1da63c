import type { Clock } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { Deadlines } from './deadlines.ts';

/** The test moves the ticks. */
function ticking() {
  const timers = new Set<() => void>();
  const clock: Clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (_delayMs, callback) => {
      timers.add(callback);
      return () => timers.delete(callback);
    },
  };
  const tick = (count = 1): void => {
    for (let passed = 0; passed < count; passed += 1) {
      for (const callback of [...timers]) {
        timers.delete(callback);
        callback();
      }
    }
  };
  return { deadlines: new Deadlines(clock, 100), tick, timers: () => timers.size };
}

test.each([
  [1, 2],
  [100, 2],
  [101, 3],
  [1_000, 11],
])('%i ms are over at tick %i: never early, at most two ticks late', (delayMs, missedAt) => {
  const { deadlines, tick } = ticking();
  let missed = 0;
  const deadline = deadlines.add(() => {
    missed += 1;
  });
  deadline.set(delayMs);
  tick(missedAt - 1);
  expect(missed).toBe(0);
  tick();
  expect(missed).toBe(1);
  tick(100);
  expect(missed).toBe(1);
});

test('a deadline that is put off is not missed, and is set again when it was', () => {
  const { deadlines, tick } = ticking();
  const missed: number[] = [];
  const [put, other] = [0, 1].map((index) => deadlines.add(() => missed.push(index)));
  other?.set(1_000);
  for (let times = 0; times < 5; times += 1) {
    put?.set(300);
    tick(3);
  }
  expect(missed).toEqual([1]);
  tick();
  expect(missed).toEqual([1, 0]);
  put?.set(100);
  tick(2);
  expect(missed).toEqual([1, 0, 0]);
});

test('the last deadline takes the one timer with it, from inside a tick too', () => {
  const { deadlines, tick, timers } = ticking();
  const all = Array.from({ length: 1_000 }, () => deadlines.add(() => expect.unreachable()));
  expect(timers()).toBe(1);
  for (const deadline of all) deadline.end();
  expect(timers()).toBe(0);
  const last = deadlines.add(() => last.end());
  last.set(100);
  tick(2);
  expect(timers()).toBe(0);
  last.set(100);
  expect(timers()).toBe(0);
});
