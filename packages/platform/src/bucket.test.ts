import { describe, expect, test } from 'vitest';
import { Bucket, Buckets } from './bucket.ts';

describe('a bucket', () => {
  test('gives what it has, then at its rate, whatever was taken beyond it', () => {
    const bucket = new Bucket({ perSecond: 10, most: 5 }, 0);
    expect(bucket.take(5, 0)).toBe(0);
    expect(bucket.take(1, 0)).toBe(100);
    expect(bucket.take(1, 0)).toBe(200);
    expect(bucket.take(0, 200)).toBe(0);
    expect(bucket.tryTake(1, 200)).toBe(100);
    expect(bucket.tryTake(1, 300)).toBe(0);
  });

  test('never holds more than its most, and fills nothing while the clock goes back', () => {
    const bucket = new Bucket({ perSecond: 10, most: 5 }, 0);
    expect(bucket.tryTake(6, 1_000_000)).toBe(100);
    expect(bucket.tryTake(5, 1_000_000)).toBe(0);
    expect(bucket.tryTake(1, 0)).toBe(100);
    expect(bucket.tryTake(1, 100)).toBe(0);
  });
});

describe('buckets', () => {
  test('are each taker’s own, are kept until they are full again, and no longer', () => {
    const buckets = new Buckets({ perSecond: 1, most: 2 }, 10);
    expect(buckets.of('a', 0).tryTake(2, 0)).toBe(0);
    expect(buckets.of('a', 0).tryTake(1, 0)).toBe(1_000);
    expect(buckets.of('b', 1_000).tryTake(1, 1_000)).toBe(0);
    expect(buckets.size).toBe(2);
    buckets.of('c', 9_000);
    expect(buckets.size).toBe(1);
  });

  test('are so many and one more, which all newcomers share until there is room', () => {
    const buckets = new Buckets({ perSecond: 1, most: 2 }, 100);
    for (let at = 0; at < 300; at += 1) buckets.of(`k${at}`, 0).take(1, 0);
    expect(buckets.size).toBe(101);
    expect(buckets.of('another', 0).tryTake(1, 0)).toBeGreaterThan(0);
    expect(buckets.of('k0', 0).tryTake(1, 0)).toBe(0);
    for (let at = 0; at < 100; at += 1) buckets.of('last', 300_000);
    expect(buckets.size).toBe(1);
  });
});
