import { expect, test } from 'vitest';
import { retryAfterMs, retryAfterMsMax } from './retry-after.ts';

const date = 'Sun, 22 Nov 2026 08:00:00 GMT';

test.each([
  ['0', 0],
  [' 12 ', 12_000],
  ['9999999999', retryAfterMsMax],
  ['99999999999', retryAfterMsMax],
  ['9'.repeat(400), retryAfterMsMax],
  ['Sun, 22 Nov 2026 08:00:30 GMT', 30_000],
  ['Sun, 22 Nov 2026 07:59:00 GMT', 0],
  ['Mon, 22 Nov 2027 08:00:00 GMT', retryAfterMsMax],
  ['-5', undefined],
  ['soon', undefined],
])('%j is %j ms', (text, ms) => {
  expect(retryAfterMs({ 'retry-after': text, date })).toBe(ms);
});

test('nothing, or a date that can be compared with none, says nothing', () => {
  expect(retryAfterMs({})).toBeUndefined();
  expect(retryAfterMs({ 'retry-after': date })).toBeUndefined();
});
