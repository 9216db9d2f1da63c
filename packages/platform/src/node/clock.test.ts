import { expect, test, vi } from 'vitest';
import { nodeClock } from './clock.ts';

test('the clock reports the wall time of the machine', () => {
  const before = Date.now();
  const nowMs = nodeClock().nowMs();
  expect(nowMs).toBeGreaterThanOrEqual(before);
  expect(nowMs).toBeLessThanOrEqual(Date.now());
});

test('the clock never goes back on the suspend-aware clock', () => {
  const clock = nodeClock();
  let last = clock.suspendAwareMs();
  for (let reading = 0; reading < 2_000; reading += 1) {
    const next = clock.suspendAwareMs();
    expect(next).toBeGreaterThanOrEqual(last);
    last = next;
  }
});

test('the clock counts a suspend that the monotonic clock did not see', () => {
  const sources = { monotonic: 1_000, uptime: 5_000 };
  const clock = nodeClock({
    monotonicMs: () => sources.monotonic,
    uptimeMs: () => sources.uptime,
  });
  const start = clock.suspendAwareMs();
  sources.monotonic += 10;
  sources.uptime += 60_010;
  expect(clock.suspendAwareMs() - start).toBe(60_010);
});

test('the uptime is read once per millisecond of running time, however often asked for', () => {
  const sources = { monotonic: 1_000, readings: 0 };
  const clock = nodeClock({
    monotonicMs: () => sources.monotonic,
    uptimeMs: () => {
      sources.readings += 1;
      return 5_000;
    },
  });
  for (let asked = 0; asked < 1_000; asked += 1) clock.suspendAwareMs();
  expect(sources.readings).toBe(1);
  sources.monotonic += 1;
  clock.suspendAwareMs();
  expect(sources.readings).toBe(2);
});

test('the clock does not go back when the coarse uptime lags behind the monotonic clock', () => {
  const sources = { monotonic: 1_000, uptime: 5_000 };
  const clock = nodeClock({
    monotonicMs: () => sources.monotonic,
    uptimeMs: () => sources.uptime,
  });
  const start = clock.suspendAwareMs();
  sources.monotonic += 9;
  expect(clock.suspendAwareMs() - start).toBe(9);
  sources.monotonic += 1;
  sources.uptime += 10;
  expect(clock.suspendAwareMs() - start).toBe(10);
});

test('the clock runs a callback once after its delay', async () => {
  const clock = nodeClock();
  const start = performance.now();
  const elapsedMs = await new Promise<number>((resolve) => {
    clock.after(30, () => resolve(performance.now() - start));
  });
  expect(elapsedMs).toBeGreaterThanOrEqual(28);
});

test('the clock does not run a cancelled callback, and takes a second cancel', async () => {
  const clock = nodeClock();
  let ran = false;
  const cancel = clock.after(5, () => {
    ran = true;
  });
  cancel();
  cancel();
  await new Promise<void>((resolve) => {
    clock.after(30, () => resolve());
  });
  expect(ran).toBe(false);
});

test('the clock waits longer than one Node timer can hold', () => {
  vi.useFakeTimers();
  try {
    const thirtyDaysMs = 30 * 24 * 3_600_000;
    let ran = false;
    nodeClock().after(thirtyDaysMs, () => {
      ran = true;
    });
    vi.advanceTimersByTime(thirtyDaysMs - 1);
    expect(ran).toBe(false);
    vi.advanceTimersByTime(1);
    expect(ran).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

test.each([-1, Number.NaN])('the clock refuses a delay of %s', (delayMs) => {
  expect(() => nodeClock().after(delayMs, () => {})).toThrow('delayMs must be 0 or more');
});
