import { expect, test } from 'vitest';
import { wrap } from './wrap.ts';

test('the wrapping breaks at spaces, keeps lines and their own indentation', () => {
  const text =
    'one two three four five six seven eight nine\n  - item of a list that is long enough to go on';
  expect(wrap(text, 40)).toBe(
    [
      '  one two three four five six seven',
      '  eight nine',
      '    - item of a list that is long enough',
      '    to go on',
    ].join('\n'),
  );
});

test('the wrapping leaves a word alone that is longer than a line', () => {
  const word = 'x'.repeat(60);
  expect(wrap(`a ${word}`, 40)).toBe(`  a\n  ${word}`);
});

test('the wrapping leaves the blanks of a table alone, and those of a line that is broken', () => {
  const table = 'NAME  STATE      RACK\nh1    available  r1';
  expect(wrap(table, 40)).toBe('  NAME  STATE      RACK\n  h1    available  r1');
  expect(wrap('NAME        STATE        RACK         POWER', 40)).toBe(
    '  NAME        STATE        RACK\n  POWER',
  );
});
