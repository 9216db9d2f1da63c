import { expect, test } from 'vitest';
import { counted, durationText } from './words.ts';

test('a count of one, of many and of none has a form of its own', () => {
  expect([0, 1, 2].map((count) => counted(count, 'host'))).toEqual([
    'no hosts',
    '1 host',
    '2 hosts',
  ]);
  expect([1n, 3n].map((count) => counted(count, 'entry', 'entries'))).toEqual([
    '1 entry',
    '3 entries',
  ]);
});

test('a time is written in the largest unit of which it is a whole number', () => {
  const words = [0, 400, 1_000, 60_000, 90_000, 1_200_000, 3_600_000, 5_400_000, 86_400_000];
  expect(words.map(durationText)).toEqual([
    ...['less than a second', 'less than a second', '1 second', '1 minute', '90 seconds'],
    ...['20 minutes', '1 hour', '90 minutes', '1 day'],
  ]);
});
