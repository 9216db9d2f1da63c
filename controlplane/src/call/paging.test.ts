import { expect, test } from 'vitest';
import { pageSizeDefault, pageSizeMax, pageSizeOf } from './paging.ts';

test.each([
  [undefined, pageSizeDefault],
  [0, pageSizeDefault],
  [1, 1],
  [pageSizeMax, pageSizeMax],
  [pageSizeMax + 1, pageSizeMax],
  [4_294_967_295, pageSizeMax],
])('a page size of %s is %i', (asked, used) => {
  expect(pageSizeOf(asked)).toBe(used);
});
