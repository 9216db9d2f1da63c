import fc from 'fast-check';
import { expect, test } from 'vitest';
import { contentOf, Pattern, pieceBytesMax } from './pattern.ts';
import { spread, spreadBytes } from './spread.ts';

const seed = new Uint8Array(32).fill(7);

test('each unit holds its own place, also behind 2 TiB', () => {
  const pattern = new Pattern(contentOf(seed), 512);
  const far = 5 * 2 ** 40;
  const here = pattern.at(far, 2_048).slice();
  expect(pattern.differenceAt(far, here)).toBeUndefined();
  expect(pattern.differenceAt(far - 2 ** 41, here)).toMatchObject({ units: 4, belongsAt: far });
});

test('a block that was written for another seed differs in every unit', () => {
  const before = new Pattern(contentOf(seed.with(0, 8)), 512).at(0, pieceBytesMax).slice();
  const found = new Pattern(contentOf(seed), 512).differenceAt(0, before);
  expect(found).toMatchObject({ units: pieceBytesMax / 512, belongsAt: undefined });
});

test('a share is spread over a whole disk, and never written twice', () => {
  const sizes = fc.integer({ min: 1, max: 2 ** 31 }).map((blocks) => blocks * 512);
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 100 }), (sizeBytes, share) => {
      const spans = [...spread(sizeBytes, share)].sort((a, b) => a.offset - b.offset);
      const ends = spans.map(({ offset, length }) => offset + length);
      expect(spans.every(({ length }) => length > 0 && length % 512 === 0)).toBe(true);
      expect(spans.every(({ offset }, at) => at === 0 || offset >= (ends[at - 1] ?? 0))).toBe(true);
      expect(ends.at(-1)).toBeLessThanOrEqual(sizeBytes);
      const bytes = spreadBytes(sizeBytes, share);
      expect(bytes).toBeGreaterThanOrEqual(Math.floor((sizeBytes * share) / 100));
      expect(share < 100 || bytes === sizeBytes).toBe(true);
    }),
    { numRuns: 30 },
  );
});

test('each beginning of it is spread as well', () => {
  const sizeBytes = 16 * 2 ** 40;
  const begun = [...spread(sizeBytes, 10)].slice(0, 100).map(({ offset }) => offset);
  const gaps = [...begun, sizeBytes]
    .sort((a, b) => a - b)
    .map((at, n, all) => at - (all[n - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(sizeBytes / 40);
});

test('a region without any bytes has no place to be written', () => {
  expect([...spread(0, 10)]).toEqual([]);
});
