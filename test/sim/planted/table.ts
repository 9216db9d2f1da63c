/** Every planted fault. */
import { agentPlants } from './agent-plants.ts';
import { controlPlants } from './control-plants.ts';
import { discoveryPlants } from './discovery-plants.ts';
import type { Plant } from './plant.ts';
import { poolPlants } from './pool-plants.ts';
import { proofPlants } from './proof-plants.ts';
import { workflowPlants } from './workflow-plants.ts';
import { worldPlants } from './world-plants.ts';

export const plants: readonly Plant[] = [
  ...worldPlants,
  ...agentPlants,
  ...controlPlants,
  ...proofPlants,
  ...workflowPlants,
  ...discoveryPlants,
  ...poolPlants,
];
