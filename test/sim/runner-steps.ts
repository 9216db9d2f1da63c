/**
 * Steps that the simulated ramdisk has beside the production ones: one that must never run twice by
 * itself, and one that writes an image as far as a simulated disk can tell.
 */
import { RerunClass } from '@rackwright/messages';
import type { Step, StepContext, StepResult } from '@rackwright/runner';
import type { Chance } from './chance.ts';
import type { DiskImage, SimDrive } from './drives.ts';

export const flashStepName = 'firmware.flash';
export const imageStepName = 'deploy.write_image';

export interface StepSurroundings {
  readonly chance: Chance;
  /** The machine's own log: it begins to do this now. */
  readonly begins: (step: string) => void;
  /** The first disk. */
  readonly drive: () => SimDrive | undefined;
  /** So much of an image is on it now. */
  readonly writeImage: (image: DiskImage) => void;
  /** Whether the agent shows the end of an image by now. */
  readonly isReadable: (deployment: string, digest: string) => boolean;
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
    run: async (context) => {
      context.crashPoint('runner.begun');
      begins(flashStepName);
      await pause(context, chance.around(6_000));
      return { result: { kind: 'complete' } };
    },
  };
}

/** Writes an image: as destructive as an erasure. */
export function imageStep(around: StepSurroundings): Step {
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
    run: (context) => writeImage(context, around),
  };
}

/** How often no disk fits, which is found out before anything is written. */
const noRootDisk = 0.03;

/** In two halves, so that a death between them leaves a part. */
async function writeImage(context: StepContext, around: StepSurroundings): Promise<StepResult> {
  const { chance, begins, drive, writeImage: write } = around;
  context.crashPoint('runner.begun');
  begins(imageStepName);
  const { imageFile, phoneHomeUrl = '', order } = context;
  const image = {
    digest: imageFile?.digest ?? '',
    deployment: order.deployment?.id ?? '',
    phoneHome: phoneHomeUrl,
  };
  if (drive() === undefined || chance.happens(noRootDisk)) {
    return untouched('noRootDisk', 'no disk fits what is wanted of it');
  }
  // The image is read before its first byte is written, which may take its time (R11).
  await pause(context, chance.around(500));
  const may = await context.requestBegin();
  if (may.kind !== 'granted') return untouched('cancelled', `it may not begin: ${may.kind}`);
  for (const whole of [false, true]) {
    if (whole && !(await comesWhole(context, around, image))) {
      return failed('cancelled', 'the image does not come to its end');
    }
    const disk = drive();
    const isBroken =
      disk === undefined || context.clock.suspendAwareMs() < disk.traits.failsUntilMs;
    // What of a write that fails has come onto the disk, nobody knows.
    if (!isBroken || !whole) write({ ...image, whole: whole && !isBroken });
    if (isBroken) return failed('writeError', 'the disk does not take what is written');
    if (disk.traits.lies) return failed('writeError', 'the disk holds something else');
    await pause(context, chance.around(4_000));
  }
  return { result: { kind: 'complete' } };
}

function failed(type: 'writeError' | 'cancelled', message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}

function untouched(type: 'noRootDisk' | 'cancelled', message: string): StepResult {
  return { result: { kind: 'failed', type, message, disksUntouched: true } };
}

/** Waits for the end of the image, as long as somebody may still send it. */
async function comesWhole(
  context: StepContext,
  { isReadable }: StepSurroundings,
  { deployment, digest }: Pick<DiskImage, 'deployment' | 'digest'>,
): Promise<boolean> {
  while (!isReadable(deployment, digest)) {
    if (context.signal.aborted) return false;
    await pause(context, 1_000);
  }
  return true;
}

async function pause({ clock }: StepContext, forMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    clock.after(forMs, resolve);
  });
}
