/** The files of the tiers, and what the environment says of a run of the tests. */
import { matchesGlob } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryPaths } from './tidy/sources.ts';
import { secondsOfRun, tiers } from './tiers.ts';

/** A pattern, once with each word of its first braces. */
function patternsOf(pattern: string): string[] {
  const [, before, choices = '', after] = /^(.*?)\{([^}]*)\}(.*)$/.exec(pattern) ?? [];
  if (before === undefined) return [pattern];
  return choices.split(',').map((word) => `${before}${word}${after}`);
}

test('each pattern of a tier takes a file, and so does each word of its first braces', () => {
  const paths = repositoryPaths();
  const patterns = tiers.flatMap(({ include, exclude }) => [...include, ...exclude]);
  const takesNone = patterns
    .flatMap(patternsOf)
    .filter((pattern) => !paths.some((path) => matchesGlob(path, pattern)));
  expect(takesNone).toEqual([]);
});

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
