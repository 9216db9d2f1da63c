/** The runner's code for each step of a clean. A step without a row does not compile. */
import {
  burnInCpuStep,
  burnInDiskStep,
  burnInMemoryStep,
  burnInNetworkStep,
  type CleanStepName,
  eraseMetadataStep,
  eraseStep,
} from '@rackwright/messages';
import { burnInCpu } from '../burn-in/cpu.ts';
import { burnInDisk } from '../burn-in/disk.ts';
import { burnInMemory } from '../burn-in/memory.ts';
import { burnInNetwork } from '../burn-in/network.ts';
import { eraseDevices, eraseDevicesMetadata } from '../erase/step.ts';
import type { Step } from './step.ts';

const byName: Readonly<Record<CleanStepName, Step>> = {
  [eraseStep]: eraseDevices,
  [eraseMetadataStep]: eraseDevicesMetadata,
  [burnInCpuStep]: burnInCpu,
  [burnInMemoryStep]: burnInMemory,
  [burnInDiskStep]: burnInDisk,
  [burnInNetworkStep]: burnInNetwork,
};

export const stepsOfCleans: readonly Step[] = Object.values(byName);
