/** Every planted fault. */
import { agentPlants } from './agent-plants.ts';
import { controlPlants } from './control-plants.ts';
import type { Plant } from './plant.ts';

export const plants: readonly Plant[] = [...agentPlants, ...controlPlants];
