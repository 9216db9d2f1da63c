import { expect, test } from 'vitest';
import { sizeText } from './size.ts';

test.each([
  [0n, '0 B'],
  [999n, '999 B'],
  [1_000n, '1.0 kB'],
  [480_103_981_056n, '480 GB'],
  [1_920_383_410_176n, '1.9 TB'],
  [2_000_000_000_000_000_000n, '2000 PB'],
])('%s bytes are %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});
