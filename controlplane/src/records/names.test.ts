import { expect, test } from 'vitest';
import { idOf, idOfKey } from './names.ts';

test('the id of a name or a key is all that stands behind its collection', () => {
  expect(idOf('racks/r1')).toBe('r1');
  expect(idOf('hosts/h1/workflows/set-clock')).toBe('h1/workflows/set-clock');
  expect(idOfKey('racks.r1')).toBe('r1');
  expect(idOfKey('workflows.h1.set-clock')).toBe('h1.set-clock');
});

test('without a name there is no id, and an id alone is one', () => {
  expect(idOf(undefined)).toBe('');
  expect(idOf('')).toBe('');
  expect(idOf('r1')).toBe('r1');
});
