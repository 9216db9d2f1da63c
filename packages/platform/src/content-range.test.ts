import { expect, test } from 'vitest';
import { parseContentRange } from './content-range.ts';

test.each([
  ['bytes 4-9/10', { start: 4, sizeBytes: 10 }],
  ['bytes 0-0/*', { start: 0, sizeBytes: undefined }],
  ['bytes */10', undefined],
  ['bytes 4-10/10', undefined],
  ['bytes 9-4/10', undefined],
  ['bytes 4-9/1e9', undefined],
  [`bytes 4-9/${'9'.repeat(16)}`, undefined],
  ['lines 4-9/10', undefined],
  [undefined, undefined],
])('the header %j is read, or taken for none', (text, range) => {
  expect(parseContentRange(text)).toEqual(range);
});
