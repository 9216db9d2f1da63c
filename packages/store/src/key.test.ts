import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkKey, isUnder, keySegment, storeKey } from './key.ts';

test('writes a resource name with dots', () => {
  expect(storeKey('hosts', 'h1', 'workflows', 'burn-in')).toBe('hosts.h1.workflows.burn-in');
});

test('refuses a segment with a dot and says how to escape it', () => {
  expect(() => storeKey('hosts', 'h1.example.org')).toThrow(/keySegment/);
});

test('escapes addresses and serial numbers into one segment', () => {
  expect(keySegment('52:54:00:ab')).toBe('52=3A54=3A00=3Aab');
  expect(storeKey('addresses', keySegment('192.0.2.1:623'))).toBe(
    'addresses.192=2E0=2E2=2E1=3A623',
  );
});

test('escapes any text one to one', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }), (text) => {
      expect(decodeURIComponent(keySegment(text).replaceAll('=', '%'))).toBe(text);
    }),
  );
});

test('says what is wrong with a key', () => {
  expect(() => checkKey('')).toThrow(/empty/);
  expect(() => checkKey('a..b')).toThrow(/empty segment/);
  expect(() => checkKey('a.b c')).toThrow(/"b c"/);
  expect(() => checkKey('_store.x')).toThrow(/reserve/);
  expect(() => checkKey('k'.repeat(513))).toThrow(/513/);
});

test('compares prefixes by whole segments', () => {
  expect(isUnder('hosts.a', 'hosts.a')).toBe(true);
  expect(isUnder('hosts.a', 'hosts.a.b')).toBe(true);
  expect(isUnder('hosts.a', 'hosts.ab')).toBe(false);
  expect(isUnder('', 'hosts')).toBe(true);
});
