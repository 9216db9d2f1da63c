import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backoffDelayMs, fullJitterDelayMs } from './back-off.ts';
import { afterConflict, conflictBudgetMs } from './conflict-budget.ts';
import { hashFraction } from './hash.ts';

describe('back-off', () => {
  const limits = { firstMs: 1000, longestMs: 60_000 };

  test('doubles and stays within the upper quarter of its step', () => {
    for (const [attempt, whole] of [
      [1, 1000],
      [2, 2000],
      [6, 32_000],
      [7, 60_000],
      [1_000_000, 60_000],
    ] as const) {
      for (const key of ['a', 'b', 'c']) {
        const delay = backoffDelayMs({ ...limits, attempt, key });
        expect(delay).toBeGreaterThanOrEqual((whole * 3) / 4);
        expect(delay).toBeLessThanOrEqual(whole);
      }
    }
  });

  test('is the same for the same key and differs between keys', () => {
    const delays = Array.from({ length: 50 }, (_, host) =>
      backoffDelayMs({ ...limits, attempt: 7, key: `host-${host}` }),
    );
    const again = delays.map((_, host) =>
      backoffDelayMs({ ...limits, attempt: 7, key: `host-${host}` }),
    );
    expect(again).toEqual(delays);
    expect(new Set(delays).size).toBeGreaterThan(45);
  });

  test('with full jitter goes from nothing to the whole delay', () => {
    const at = (attempt: number, fraction: number) =>
      fullJitterDelayMs({ firstMs: 1000, longestMs: 30_000, attempt, fraction });
    expect([at(1, 0), at(1, 0.5), at(3, 0.5), at(9, 0.999)]).toEqual([0, 500, 2000, 29_970]);
  });
});

test('spreads hash fractions evenly, also of names that differ in one character', () => {
  const counts = new Map<number, number>();
  for (let name = 0; name < 10_000; name += 1) {
    const fraction = hashFraction(`hosts/rack-7-host-${name}`);
    expect(fraction).toBeGreaterThanOrEqual(0);
    expect(fraction).toBeLessThan(1);
    const bucket = Math.floor(fraction * 10);
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  }
  expect(counts.size).toBe(10);
  for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
});

describe('conflict budget', () => {
  test('starts with the first conflict and waits the delay asked for', () => {
    expect(afterConflict({ nowMs: 1000, delayMs: 30_000 })).toEqual({
      kind: 'retry',
      firstConflictAtMs: 1000,
      notBeforeMs: 31_000,
    });
  });

  test('never waits beyond its end, and the conflict after that counts as failed', () => {
    const firstConflictAtMs = 5000;
    const endMs = firstConflictAtMs + conflictBudgetMs;
    const late = afterConflict({ firstConflictAtMs, nowMs: endMs - 10, delayMs: 3_600_000 });
    expect(late).toEqual({ kind: 'retry', firstConflictAtMs, notBeforeMs: endMs });
    const after = afterConflict({ firstConflictAtMs, nowMs: endMs, delayMs: 0 });
    expect(after).toEqual({ kind: 'spent', firstConflictAtMs });
  });

  test('ends after fifteen minutes whatever delays are asked for', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 2_000_000 }), { minLength: 1 }), (delays) => {
        let nowMs = 0;
        let firstConflictAtMs: number | undefined;
        for (const delayMs of delays) {
          const decision = afterConflict({ firstConflictAtMs, nowMs, delayMs });
          firstConflictAtMs = decision.firstConflictAtMs;
          if (decision.kind === 'spent') return nowMs >= conflictBudgetMs;
          nowMs = decision.notBeforeMs;
          if (nowMs > conflictBudgetMs) return false;
        }
        return true;
      }),
    );
  });
});
