/** The story that the demo tells, act by act. An act that does not hold ends it with a throw. */
import { soundMachines } from '../fleet.ts';
import { showCertificate } from './certificate.ts';
import { awaitAvailable, loseAgent, refusePower } from './during-cleaning.ts';
import { explainTroubles, followExplanations } from './explanations.ts';
import { deployImages } from './images.ts';
import type { Stage } from './stage.ts';

export async function tellStory(stage: Stage): Promise<void> {
  if (soundMachines(stage.fleet).length > 0) {
    await refusePower(stage);
    await loseAgent(stage);
    await awaitAvailable(stage);
    await showCertificate(stage);
  }
  const toDo = await explainTroubles(stage);
  await followExplanations(stage, toDo);
  await deployImages(stage);
}
