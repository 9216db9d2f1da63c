import { expect, test } from 'vitest';
import { plantedFaults } from './planted.ts';
import { runWorld } from './world.ts';

/** Seeds per test, so that a failure is found soon and named. */
const seedsPerTest = 100;
const seedsTotal = 1_000;

for (let first = 1; first <= seedsTotal; first += seedsPerTest) {
  const last = first + seedsPerTest - 1;
  test(`keeps every promise under faults, seeds ${first} to ${last}`, async () => {
    let crashes = 0;
    for (let seed = first; seed <= last; seed++) {
      const result = await runWorld({ seed, hosts: 2 });
      expect(result.violations, `npm run sim -- --seed ${seed}`).toEqual([]);
      crashes += result.crashes;
    }
    expect(crashes).toBeGreaterThan(seedsPerTest);
  });
}

test('gives the same trace for the same seed', async () => {
  const first = await runWorld({ seed: 4242, hosts: 3 });
  const second = await runWorld({ seed: 4242, hosts: 3 });
  expect(second.traceHash).toBe(first.traceHash);
  expect(second.events).toBe(first.events);
});

/** Seeds among which a planted fault must be found. */
const plantedSeedsMax = 60;

for (const planted of plantedFaults) {
  test(`finds the planted fault ${planted}`, async () => {
    for (let seed = 1; seed <= plantedSeedsMax; seed++) {
      const result = await runWorld({ seed, hosts: 2, planted });
      if (result.violations.length > 0) return;
    }
    expect.fail(`${planted} went unnoticed in ${plantedSeedsMax} seeds`);
  });
}
