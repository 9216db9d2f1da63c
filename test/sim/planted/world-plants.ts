/** Defects of what the programs stand on: a store and a journal's disk that lie. */
import type { CaughtBy, Plant } from './plant.ts';

const bySimulation: CaughtBy = { kind: 'simulation' };

export const worldPlants: readonly Plant[] = [
  {
    name: 'storeForgets',
    breaks: 'a write that was acknowledged survives the death of whoever made it',
    file: 'test/sim/world.ts',
    find: "if (this.#options.planted === 'storeForgets') this.#forgetLater();",
    replace: 'this.#forgetLater();',
    caughtBy: bySimulation,
  },
  {
    name: 'journalLosesWrites',
    breaks: 'R4: what a disk acknowledged is there after a crash',
    file: 'test/sim/rack-agent.ts',
    find: "planted === 'journalLosesWrites' && random.fraction() < 0.2",
    replace: 'random.fraction() < 0.2',
    caughtBy: bySimulation,
  },
];
