import { expect, test } from 'vitest';
import { mostOut } from './deploy-judge.ts';

const log = (...lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

/** Cleaned and deployed by 13, deployed anew from 20 to 30. */
const first = log(
  ...['1.5 set power 1', '1.5 on pxe boot 1', '9.0 set power 0', '10.0 on pxe boot 2'],
  ...['12.0 set power 0', '12.5 set power 1', '13.0 on disk boot 3'],
  ...['20.0 get power', '20.0 set power 0', '21.0 on pxe boot 4', '29.0 set power 0'],
  '30.0 on disk boot 5',
);

test('machines that are out in turn are never out together', () => {
  const second = log('14.0 on pxe boot 1', '15.0 on disk boot 2', '30.0 set power 0');
  expect(mostOut([first, second], Infinity)).toBe(1);
});

test('a machine that goes before the other one is back is seen, until when it matters', () => {
  const second = log('14.0 on pxe boot 1', '15.0 on disk boot 2', '29.9 set power 0');
  expect(mostOut([first, second], Infinity)).toBe(2);
  expect(mostOut([first, second], 29_500)).toBe(1);
});

test('a machine that has not been deployed yet is not out', () => {
  expect(mostOut([first], 19_000)).toBe(0);
});
