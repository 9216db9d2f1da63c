/** Bars are full, and each part is visible. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sharesOf, statesOf } from './rollout.ts';

test('shares fill the bar, in order, and the smallest is seen', () => {
  const counts = fc.array(fc.nat(100_000), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(counts, (each) => {
      const shares = sharesOf(each);
      const sum = shares.reduce((all, { percent }) => all + percent, 0);
      expect(sum).toBeCloseTo(each.some((count) => count > 0) ? 100 : 0, 6);
      for (const [index, { percent, fromPercent }] of shares.entries()) {
        if ((each[index] ?? 0) > 0) expect(percent).toBeGreaterThan(1);
        else expect(percent).toBe(0);
        const before = shares.slice(0, index).reduce((all, share) => all + share.percent, 0);
        expect(fromPercent).toBeCloseTo(before, 6);
      }
    }),
  );
});

test('hosts of a pool stand in the order of a rollout, unknown states last', () => {
  const states = ['failed', 'waiting', 'current', 'new word', 'current'].map((state) => ({
    state,
  }));
  expect(statesOf(states)).toEqual([
    { state: 'current', count: 2 },
    { state: 'waiting', count: 1 },
    { state: 'failed', count: 1 },
    { state: 'new word', count: 1 },
  ]);
});
