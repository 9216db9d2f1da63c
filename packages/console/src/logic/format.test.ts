/** Times, sizes and names as people read them. */
import { expect, test } from 'vitest';
import {
  ago,
  bytesText,
  grouped,
  hex,
  idOf,
  memoryText,
  shortImage,
  spaced,
  span,
} from './format.ts';

test.each([
  [0, '0 s'],
  [400, '0 s'],
  [59_600, '1 min'],
  [754_000, '12 min'],
  [3_600_000, '1 h'],
  [12_000_000, '3 h 20 min'],
  [50 * 3_600_000, '2 d 2 h'],
  [40 * 24 * 3_600_000, '40 d'],
  [-5_000, '0 s'],
])('%i ms are "%s"', (ms, text) => {
  expect(span(ms)).toBe(text);
});

test('a time is told from the present, on either side of it', () => {
  expect(ago(10_000, 4_000)).toBe('6 s ago');
  expect(ago(10_000, 70_000)).toBe('in 1 min');
  expect(ago(10_000, 10_400)).toBe('now');
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [3_840_755_982_336n, '3.84 TB'],
  [16_777_216, '16.8 MB'],
  [123_456_789_012_345_678_901n, '123000 PB'],
])('%s bytes are "%s"', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});

test('memory is told in powers of 1024', () => {
  expect(memoryText(68_719_476_736n)).toBe('64 GiB');
  expect(memoryText(268_435_456n)).toBe('256 MiB');
});

test('names, numbers and images are shortened, and nothing else', () => {
  expect([grouped(1_234_567), grouped(12n), grouped(1_000)]).toEqual(['1,234,567', '12', '1,000']);
  expect([idOf('hosts/h1'), idOf('h1'), idOf('')]).toEqual(['h1', 'h1', '']);
  const digest = 'ab'.repeat(32);
  expect(shortImage(`r/web@sha256:${digest}`)).toBe('r/web@sha256:abababababab…');
  expect(shortImage('r/web:1.0')).toBe('r/web:1.0');
  expect(spaced('identityMismatch')).toBe('identity mismatch');
  expect(spaced('timed_out')).toBe('timed out');
  expect(hex(Uint8Array.of(0, 15, 255))).toBe('000fff');
});
