/** Addresses name pages, and pages addresses. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatRoute, parseRoute, routeOf } from './route.ts';

test('a page and its parameters are read back from their address', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(
      fc.array(text, { maxLength: 4 }),
      fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), text, { noNullPrototype: true }),
      (path, query) => {
        expect(parseRoute(formatRoute(path, query))).toEqual({ path, query });
      },
    ),
  );
});

test('whatever stands behind the # there is a route', () => {
  expect(parseRoute('')).toEqual({ path: [], query: {} });
  expect(parseRoute('#/')).toEqual({ path: [], query: {} });
  expect(parseRoute('#/hosts/%E0%A4%A')).toEqual({ path: ['hosts', '%E0%A4%A'], query: {} });
  expect(parseRoute('#hosts?tab')).toEqual({ path: ['hosts'], query: { tab: '' } });
});

test('a resource has the page of its name', () => {
  expect(routeOf('hosts/h1', { tab: 'disks' })).toBe('#/hosts/h1?tab=disks');
  expect(formatRoute(['hosts'], { q: '', sort: undefined })).toBe('#/hosts');
});
