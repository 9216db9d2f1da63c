import { expect, test } from 'vitest';
import { plantedFaults } from './planted.ts';
import { runWorld } from './world.ts';

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
