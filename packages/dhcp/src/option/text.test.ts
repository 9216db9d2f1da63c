import { expect, test } from 'vitest';
import { anyText, hexBytes, testCodec } from './test-codec.ts';
import { text } from './text.ts';

testCodec(text, {
  golden: [
    ['505845436c69656e74', 'PXEClient'],
    ['', ''],
    ['e9', 'é'],
  ],
  refused: [],
  values: anyText(300),
});

test('the codec cuts the zeros that some firmware puts behind its text', () => {
  expect(text.decode(hexBytes('61620000'))).toBe('ab');
});
