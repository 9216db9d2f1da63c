/** A bounded number of pages of a long list is kept, and changes reach their rows. */
import { expect, test } from 'vitest';
import { missing, type Pages, pageRows, pagesKept, rowAt, withPage, withRow } from './pages.ts';

const page = (number: number, version = 0) => ({
  rows: Array.from({ length: pageRows }, (_, at) => `h${number * pageRows + at}`),
  version,
});
const none: Pages<string> = new Map();

test('a list that is scrolled through a hundred thousand rows keeps a dozen pages', () => {
  let pages = none;
  for (let number = 0; number < 1_000; number += 1) pages = withPage(pages, number, page(number));
  expect(pages.size).toBe(pagesKept);
  expect(rowAt(pages, 99_999)).toBe('h99999');
  expect(rowAt(pages, 0)).toBeUndefined();
});

test('a page of an earlier question is shown, and asked for again', () => {
  const pages = withPage(none, 3, page(3));
  expect(missing(pages, [3, 4], 0)).toEqual([4]);
  expect(missing(pages, [3, 4], 1)).toEqual([3, 4]);
  expect(rowAt(pages, 301)).toBe('h301');
});

test('a changed row replaces its earlier version, and no other row changes', () => {
  const pages = withPage(none, 0, page(0));
  const next = withRow(pages, 'h7 changed', (row) => row === 'h7');
  expect([rowAt(next, 6), rowAt(next, 7), rowAt(next, 8)]).toEqual(['h6', 'h7 changed', 'h8']);
  expect(withRow(pages, 'h700', (row) => row === 'h700')).toBe(pages);
});
