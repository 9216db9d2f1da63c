import { expect, test } from 'vitest';
import { asMac, canonicalMac, hyphenatedMac } from './mac.ts';

test('the parser takes both separators and any case', () => {
  for (const text of ['52:54:00:AB:cd:01', '52-54-00-ab-CD-01']) {
    expect(canonicalMac(text)).toBe('52:54:00:ab:cd:01');
  }
  expect(hyphenatedMac(asMac('52:54:00:ab:cd:01'))).toBe('52-54-00-ab-cd-01');
});

test.each([
  '',
  '52:54:00:ab:cd',
  '52:54:00:ab:cd:01:02',
  '52:54-00:ab:cd:01',
  '5254.00ab.cd01',
  '525400abcd01',
  '52:54:00:ab:cd:0g',
  ' 52:54:00:ab:cd:01',
  '52:54:00:ab:cd:01\n',
])('the parser refuses %j', (text) => {
  expect(canonicalMac(text)).toBeUndefined();
  expect(() => asMac(text)).toThrow('is no Ethernet address');
});
