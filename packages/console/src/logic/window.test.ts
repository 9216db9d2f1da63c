/** A bounded part of a list of any length is drawn, and every row of it can be reached. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { evicted, overscanRows, pagesOf, scrollTo, spacerPxMax, windowOf } from './window.ts';

const heightPx = 600;
const rowPx = 34;
const at = (scrollPx: number, rows: number) => windowOf({ scrollPx, heightPx, rowPx, rows });

test('at the top the first rows are drawn, at the bottom the last ones', () => {
  expect(at(0, 100_000)).toMatchObject({ first: 0, topPx: 0, spacerPx: 3_400_000 });
  const bottom = at(3_400_000, 100_000);
  expect(bottom.end).toBe(100_000);
  expect(bottom.first).toBeGreaterThan(99_960);
});

test('an empty list, and one that is shorter than the screen, are drawn whole', () => {
  expect(at(0, 0)).toMatchObject({ first: 0, end: 0 });
  expect(at(500, 3)).toMatchObject({ first: 0, end: 3 });
});

test('wherever a list of any length is scrolled, what is drawn is bounded and in it', () => {
  const most = Math.ceil(heightPx / rowPx) + 1 + 2 * overscanRows;
  fc.assert(
    fc.property(fc.nat(5_000_000), fc.double({ min: -1e4, max: 2e8, noNaN: true }), (rows, px) => {
      const { first, end, spacerPx } = at(px, rows);
      expect(first).toBeGreaterThanOrEqual(0);
      expect(end).toBeLessThanOrEqual(rows);
      expect(end - first).toBeGreaterThanOrEqual(Math.min(rows, 1));
      expect(end - first).toBeLessThanOrEqual(most);
      expect(spacerPx).toBeLessThanOrEqual(spacerPxMax);
    }),
  );
});

test('a list that is too tall to be drawn is reached at both ends all the same', () => {
  const rows = 2_000_000;
  expect(at(0, rows)).toMatchObject({ first: 0, spacerPx: spacerPxMax });
  expect(at(spacerPxMax, rows).end).toBe(rows);
});

test('a row that is moved to is on the screen, and one that is there moves nothing', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3_000_000 }), fc.nat(), fc.nat(), (rows, seed, px) => {
      const row = seed % rows;
      const viewport = { scrollPx: px % spacerPxMax, heightPx, rowPx, rows };
      const scrollPx = scrollTo(row, viewport);
      const { first, end } = windowOf({ ...viewport, scrollPx });
      expect(row).toBeGreaterThanOrEqual(first);
      expect(row).toBeLessThan(end);
    }),
  );
  const seen = { scrollPx: 340, heightPx, rowPx, rows: 1_000 };
  expect(scrollTo(12, seen)).toBe(340);
});

test('the pages that are wanted are those of the rows that are drawn', () => {
  expect(pagesOf({ first: 95, end: 105 }, 100)).toEqual([0, 1]);
  expect(pagesOf({ first: 100, end: 200 }, 100)).toEqual([1]);
  expect(pagesOf({ first: 0, end: 0 }, 100)).toEqual([]);
});

test('the pages that are farthest away go first of those that are kept', () => {
  expect(evicted([1, 2, 3, 50, 51], 3, 3)).toEqual([50, 51]);
  expect(evicted([1, 2], 1, 3)).toEqual([]);
});
