/** The order in which the files of a run begin. */
import { expect, test } from 'vitest';
import { compareFiles } from './longest-first.ts';
import { repositoryPaths } from './tidy/sources.ts';
import { longest, tiers, tiersOf } from './tiers.ts';

const names = tiers.map(({ name }) => name);
const files = repositoryPaths()
  .filter((path) => path.endsWith('.test.ts'))
  .flatMap((path) => tiersOf(path).map((tier) => ({ path, tier })));

test.each([
  ['a run without a limit', names],
  ['a run with a limit on its time', names.toReversed()],
])('no worker of %s comes back to a tier', (_run, order) => {
  const begun = files.toSorted((a, b) => compareFiles(a, b, order)).map(({ tier }) => tier);
  const changes = begun.filter((tier, at) => tier !== begun[at - 1]);
  expect(changes).toEqual(order);
});

test('the longest files of a tier come first in it', () => {
  for (const tier of names) {
    const inTier = files.filter((file) => file.tier === tier);
    const begun = inTier.toSorted((a, b) => compareFiles(a, b, names)).map(({ path }) => path);
    const known = longest.filter((path) => begun.includes(path));
    expect(begun.slice(0, known.length)).toEqual(known);
  }
});
