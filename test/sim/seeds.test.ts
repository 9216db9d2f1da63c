/** A file of its own: the longest part of the simulation goes on beside the others. */
import { expect, test } from 'vitest';
import { runWorld } from './world.ts';

const seedsMax = 25;
/** Of one seed: twice as many as the busiest has. More are two that undo each other's work. */
const eventsMax = 40_000;

test(`a rack keeps its word under faults, seeds 1 to ${seedsMax}; CI takes others`, async () => {
  let crashes = 0;
  for (let seed = 1; seed <= seedsMax; seed++) {
    const result = await runWorld({ seed, hosts: 2 });
    expect(result.violations, `npm run sim -- --seed ${seed}`).toEqual([]);
    expect(result.events, `events of seed ${seed}`).toBeLessThan(eventsMax);
    crashes += result.crashes;
  }
  expect(crashes).toBeGreaterThan(seedsMax);
});
