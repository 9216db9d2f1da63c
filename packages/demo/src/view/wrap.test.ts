import { expect, test } from 'vitest';
import { wrap } from './wrap.ts';

test('breaks at spaces, keeps lines and their own indentation', () => {
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

test('leaves a word alone that is longer than a line', () => {
  const word = 'x'.repeat(60);
  expect(wrap(`a ${word}`, 40)).toBe(`  a\n  ${word}`);
});
