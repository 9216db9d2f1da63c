import { expect, test } from 'vitest';
import { describeSecondAttempts, firstLines } from './attempts-reporter.ts';

test('the tests that passed at the second attempt are named, one on a line', () => {
  expect(describeSecondAttempts(['a.test.ts > works', 'b.test.ts > works'])).toBe(
    'Passed at the second attempt:\n  a.test.ts > works\n  b.test.ts > works',
  );
});

test('the reporter says nothing when every test needed one attempt', () => {
  expect(describeSecondAttempts([])).toBe('');
});

test('the reporter shows the first lines of a long error', () => {
  const text = Array.from({ length: 100 }, (_, index) => `line ${index}`).join('\n');
  expect(firstLines(text).split('\n')).toHaveLength(30);
});
