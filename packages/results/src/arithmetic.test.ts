import { describe, expect, test } from 'vitest';
import { backoffDelayMs, fullJitterDelayMs } from './back-off.ts';
import { hashFraction } from './hash.ts';

describe('back-off', () => {
  const limits = { firstMs: 1000, delayMsMax: 60_000 };

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

  test('a back-off with full jitter goes from nothing to the whole delay', () => {
    const at = (attempt: number, fraction: number) =>
      fullJitterDelayMs({ firstMs: 1000, delayMsMax: 30_000, attempt, fraction });
    expect([at(1, 0), at(1, 0.5), at(3, 0.5), at(9, 0.999)]).toEqual([0, 500, 2000, 29_970]);
  });
});

test('hash fractions spread evenly, also of names that differ in one character', () => {
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
