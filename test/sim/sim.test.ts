import { expect, test } from 'vitest';
import { plantedFaults } from './planted.ts';
import { regressions } from './regressions.ts';
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

test.each(regressions)('the simulation keeps its promises where $was', async (regression) => {
  const world = { discovery: false, batches: false, pools: false, views: false, ...regression };
  expect((await runWorld(world)).violations).toEqual([]);
});

test.each([true, false])('the same seed gives the same trace, operators %s', async (people) => {
  for (const seed of [42, 4242]) {
    const first = await runWorld({ seed, hosts: 3, operators: people });
    const second = await runWorld({ seed, hosts: 3, operators: people });
    expect(second.traceHash).toBe(first.traceHash);
    expect(second.events).toBe(first.events);
    expect([...second.figures]).toEqual([...first.figures]);
  }
});

/** Seeds among which a planted fault must be found. */
const plantedSeedsMax = 60;

for (const planted of plantedFaults) {
  test(`finds the planted fault ${planted}`, async () => {
    for (let seed = 1; seed <= plantedSeedsMax; seed++) {
      const result = await runWorld({ seed, hosts: 2, planted, operators: false });
      const [violation] = result.violations;
      if (violation === undefined) continue;
      // A rack that stands still (J7) may do so for another reason.
      expect(violation.rule).not.toBe('J7');
      return;
    }
    expect.fail(`${planted} went unnoticed in ${plantedSeedsMax} seeds`);
  });
}
