/** Typed words and chosen values become one filter of the server. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { filterOf, isWord, orderByOf, quoted, sortedBy } from './filter.ts';

test.each([
  ['', {}, ''],
  ['h1', {}, '(name = *h1* OR serial:h1)'],
  ['52:54:00:AA:bb:01', {}, 'boot_macs:52:54:00:aa:bb:01'],
  ['52-54-00-aa-bb-01', {}, 'boot_macs:52:54:00:aa:bb:01'],
  ['10.0.0.7', {}, 'bmc.address = 10.0.0.7'],
  ['labels.site = fra1 OR dirty = true', {}, '(labels.site = fra1 OR dirty = true)'],
  ['', { state: 'available', fault: '*' }, 'state = available AND fault:*'],
  ['', { fault: '' }, 'NOT fault:*'],
  ['', { fault: 'bmcSilent', rack: 'r 1' }, 'fault:bmcSilent AND rack = "r 1"'],
  [' web ', { power: 'true' }, '(name = *web* OR serial:web) AND power = true'],
])('"%s" with %j asks for "%s"', (text, chosen, filter) => {
  expect(filterOf({ text, chosen })).toBe(filter);
});

test('a value with anything in it stays one value', () => {
  fc.assert(
    fc.property(fc.string(), (value) => {
      const text = quoted(value);
      if (!text.startsWith('"')) {
        expect(text).toMatch(/^[\w.:/*-]+$/);
        return;
      }
      expect(text.slice(1, -1).replace(/\\(.)/gs, '$1')).toBe(value);
      expect(text.slice(1, -1).replace(/\\./gs, '')).not.toContain('"');
    }),
  );
  expect([quoted('AND'), quoted('')]).toEqual(['"AND"', '""']);
});

test('words of the filter’s own language are no words to look for', () => {
  expect(['h1', 'a.b', 'AND', 'a b', '(x', 'a=b'].filter(isWord)).toEqual(['h1', 'a.b']);
});

test('a second click on a column turns the order round', () => {
  const byName = { field: 'name', descending: false };
  expect(orderByOf(byName)).toBe('');
  const byState = sortedBy(byName, 'state');
  expect(orderByOf(byState)).toBe('state');
  expect(orderByOf(sortedBy(byState, 'state'))).toBe('state desc');
  expect(orderByOf(sortedBy(byName, 'name'))).toBe('name desc');
});
