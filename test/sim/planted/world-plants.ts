/** Defects of what the programs stand on: a store that lies. */
import type { CaughtBy, Plant } from './plant.ts';

const bySimulation: CaughtBy = { kind: 'simulation' };

export const worldPlants: readonly Plant[] = [
  {
    name: 'storeForgets',
    breaks: 'a write that was acknowledged survives the death of whoever made it',
    file: 'test/sim/world.ts',
    find: "if (this.#options.planted === 'storeForgets') this.#forgetLater();",
    replace: 'this.#forgetLater();',
    caughtBy: { ...bySimulation, from: 2 },
  },
];
