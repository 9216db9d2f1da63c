/** How the runner carries out each step of a clean. One without a row does not compile. */
import { type CleanStepName, eraseMetadataStep, eraseStep } from '@rackwright/messages';
import { eraseDevices, eraseDevicesMetadata } from '../erase/step.ts';
import type { Step } from './step.ts';

const byName: Readonly<Record<CleanStepName, Step>> = {
  [eraseStep]: eraseDevices,
  [eraseMetadataStep]: eraseDevicesMetadata,
};

export const stepsOfCleans: readonly Step[] = Object.values(byName);
