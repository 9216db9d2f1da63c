/** What the environment says of a run of the tests. */
import { expect, test } from 'vitest';
import { secondsOfRun } from './tiers.ts';

test('a run without RACKWRIGHT_TEST_SECONDS has no limit', () => {
  expect(secondsOfRun({})).toBeUndefined();
});

test('a limit is a number of seconds above 0, and anything else is refused by its name', () => {
  expect(secondsOfRun({ RACKWRIGHT_TEST_SECONDS: '90' })).toBe(90);
  for (const text of ['', ' ', 'soon', '0', '-1', '5m', 'NaN']) {
    expect(() => secondsOfRun({ RACKWRIGHT_TEST_SECONDS: text })).toThrow(
      'RACKWRIGHT_TEST_SECONDS has to be seconds above 0',
    );
  }
});
