/**
 * Steps that the simulated ramdisk has beside the production ones: one that must never run twice by
 * itself, and one that writes an image as far as a simulated disk can tell.
 */
import { RerunClass } from '@rackwright/api';
import type { Step, StepContext, StepEnd } from '@rackwright/runner';
import type { Chance } from './chance.ts';

export const flashStepName = 'firmware.flash';
export const imageStepName = 'deploy.write_image';

export interface StepSurroundings {
  readonly chance: Chance;
  /** The machine's own log: it begins to do this now. */
  readonly begins: (step: string) => void;
  /** Data comes onto the first disk. */
  readonly writeImage: () => void;
}

/** Flashes firmware: an interrupted one is for a person to look at. */
export function flashStep({ chance, begins }: StepSurroundings): Step {
  return {
    description: {
      name: flashStepName,
      priority: 15,
      rerunClass: RerunClass.NEVER_TWICE,
      destructive: false,
      abortable: false,
      description: 'Writes the firmware of the network card.',
      arguments: {},
    },
    run: (context) => work(context, chance.around(6_000), () => begins(flashStepName)),
  };
}

/** Writes an image: as destructive as an erasure. */
export function imageStep({ chance, begins, writeImage }: StepSurroundings): Step {
  return {
    description: {
      name: imageStepName,
      priority: 0,
      rerunClass: RerunClass.SAFE,
      destructive: true,
      abortable: true,
      description: 'Writes an image to the root disk.',
      arguments: { image: 'what is written' },
    },
    run: (context) =>
      work(context, chance.around(8_000), () => {
        begins(imageStepName);
        writeImage();
      }),
  };
}

async function work(context: StepContext, tookMs: number, begin: () => void): Promise<StepEnd> {
  context.crashPoint('runner.begun');
  begin();
  await new Promise<void>((resolve) => {
    context.clock.after(tookMs, resolve);
  });
  return { result: { kind: 'complete' } };
}
