import { describe, expect, test } from 'vitest';
import { addressesMax, OpenCalls } from './open-calls.ts';

const limits = { openCallsPerSecond: 2, openCallsBurst: 3 };

describe('calls that need no token', () => {
  test('come at once up to the burst, then at their rate, each address by itself', () => {
    const calls = new OpenCalls(limits);
    const waits = [1, 2, 3, 4].map(() => calls.waitMs('a', 0));
    expect(waits).toEqual([0, 0, 0, 500]);
    expect(calls.waitMs('b', 0)).toBe(0);
    expect(calls.waitMs('a', 250)).toBe(250);
    expect(calls.waitMs('a', 500)).toBe(0);
    expect(calls.waitMs('a', 500)).toBe(500);
  });

  test('of a clock that goes back are not let through for ever', () => {
    const calls = new OpenCalls(limits);
    for (let at = 0; at < 3; at += 1) calls.waitMs('a', 10_000);
    expect(calls.waitMs('a', 0)).toBe(500);
    expect(calls.waitMs('a', 500)).toBe(0);
  });

  test('are remembered of so many addresses, and of none for longer than needed', () => {
    const calls = new OpenCalls(limits);
    for (let at = 0; at < 2 * addressesMax; at += 1) calls.waitMs(`a${at}`, 0);
    expect(calls.addresses).toBeLessThanOrEqual(addressesMax + 1);
    expect(calls.waitMs('another', 0)).toBeGreaterThan(0);
    expect(calls.waitMs('another', 10_000)).toBe(0);
    expect(calls.addresses).toBeLessThan(10);
  });
});
