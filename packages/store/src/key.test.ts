import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkKey, isUnder, keySegment, storeKey } from './key.ts';

test('a resource name becomes a key with dots', () => {
  expect(storeKey('hosts', 'h1', 'workflows', 'burn-in')).toBe('hosts.h1.workflows.burn-in');
});

test('a segment with a dot is refused with the way to escape it', () => {
  expect(() => storeKey('hosts', 'h1.example.org')).toThrow(/keySegment/);
});

test('an address or a serial number is escaped into one segment', () => {
  expect(keySegment('52:54:00:ab')).toBe('52=3A54=3A00=3Aab');
  expect(storeKey('addresses', keySegment('192.0.2.1:623'))).toBe(
    'addresses.192=2E0=2E2=2E1=3A623',
  );
});

test('any escaped text is decoded to the same text', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }), (text) => {
      expect(decodeURIComponent(keySegment(text).replaceAll('=', '%'))).toBe(text);
    }),
  );
});

test('a wrong key is refused with its problem', () => {
  expect(() => checkKey('')).toThrow(/empty/);
  expect(() => checkKey('a..b')).toThrow(/empty segment/);
  expect(() => checkKey('a.b c')).toThrow(/"b c"/);
  expect(() => checkKey('_store.x')).toThrow(/reserve/);
  expect(() => checkKey('k'.repeat(513))).toThrow(/513/);
});

test('a prefix is compared by whole segments', () => {
  expect(isUnder('hosts.a', 'hosts.a')).toBe(true);
  expect(isUnder('hosts.a', 'hosts.a.b')).toBe(true);
  expect(isUnder('hosts.a', 'hosts.ab')).toBe(false);
  expect(isUnder('', 'hosts')).toBe(true);
});
