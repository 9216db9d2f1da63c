import { expect, test } from 'vitest';
import { regressions } from './regressions.ts';
import { runWorld } from './world.ts';

test.each(regressions)('the simulation keeps its promises where $was', async (regression) => {
  const world = { discovery: false, batches: false, pools: false, views: false, ...regression };
  expect((await runWorld(world)).violations).toEqual([]);
});
