import { expect, test } from 'vitest';
import { blocksForHole, blocksForShare, holeFound, shareFound } from './verification.ts';

const gib = 1024 ** 3;

test.each([0.5, 0.9, 0.99, 0.999_9])('with a confidence of %d more places find less', (sure) => {
  for (const sizeBytes of [gib, 4_000 * gib]) {
    let before = Number.POSITIVE_INFINITY;
    for (const places of [1_000, 10_000, 100_000]) {
      const hole = holeFound(places, sizeBytes, sure);
      expect(hole).toBeGreaterThan(0);
      expect(hole).toBeLessThan(before);
      // The computed number of places finds a hole of that size, and no larger hole is promised.
      const needed = blocksForHole(hole, sizeBytes, sure);
      expect(needed).toBeLessThanOrEqual(places);
      expect(holeFound(needed, sizeBytes, sure)).toBeLessThanOrEqual(hole);
      before = hole;
    }
  }
});

test('the share that is found is the one that so many places miss so seldom', () => {
  for (const [places, sure] of [
    [100, 0.9],
    [5_000, 0.99],
  ] as const) {
    const share = shareFound(places, sure);
    expect((1 - share) ** places).toBeCloseTo(1 - sure, 6);
    expect(blocksForShare(share * 1.000_001, sure)).toBeLessThanOrEqual(places);
    expect(blocksForShare(share / 1.01, sure)).toBeGreaterThan(places);
  }
});

test('more confidence needs larger holes, and every place finds the smallest', () => {
  expect(holeFound(1_000, gib, 0.99)).toBeGreaterThan(holeFound(1_000, gib, 0.9));
  const blocks = gib / 4_096;
  expect(holeFound(blocks, gib, 0.99)).toBeLessThanOrEqual(4_097);
  expect(holeFound(10 * blocks, gib, 0.99)).toBe(holeFound(blocks, gib, 0.99));
});
