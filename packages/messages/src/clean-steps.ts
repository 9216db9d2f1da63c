/**
 * The clean steps of this release's runner. The control plane plans with them until a runner has
 * announced its own; the runner runs them. A step without a function does not compile.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { StepDescriptionSchema } from './gen/rackwright/agent/v1/report_pb.ts';
import { ArgumentType, RerunClass, type StepArgumentSchema } from './gen/rackwright/v1/run_pb.ts';
import {
  burnInCpuStep,
  burnInDiskStep,
  burnInMemoryStep,
  burnInNetworkStep,
  eraseMetadataStep,
  eraseStep,
} from './step-names.ts';

type Description = MessageInitShape<typeof StepDescriptionSchema>;
type Argument = MessageInitShape<typeof StepArgumentSchema>;

/** The maximum duration of a burn-in, seconds. */
const burnInSecondsMax = 72n * 3_600n;

function durationOf(defaultValue: string, description: string): Argument {
  const limits = { minimum: 1n, maximum: burnInSecondsMax };
  return { name: 'duration', type: ArgumentType.DURATION, description, defaultValue, ...limits };
}

function wholeOf(
  name: string,
  [minimum, maximum]: readonly [bigint, bigint],
  defaultValue: string,
  description: string,
): Argument {
  const type = ArgumentType.INTEGER;
  return { name, type, description, defaultValue, minimum, maximum };
}

const celsiusMax = wholeOf(
  'celsius_max',
  [0n, 150n],
  '0',
  'fails when a sensor of the machine says more; 0: no limit',
);

export const cleanSteps = {
  [eraseStep]: {
    name: eraseStep,
    priority: 10,
    rerunClass: RerunClass.CHECK_FIRST,
    destructive: true,
    abortable: true,
    description: 'Erases every disk of the host and proves it by reading back.',
  },
  [eraseMetadataStep]: {
    name: eraseMetadataStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: true,
    abortable: true,
    description: 'Overwrites partition tables and signatures only: a weaker level, not an erasure.',
  },
  [burnInCpuStep]: {
    name: burnInCpuStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: false,
    abortable: true,
    description: 'Has every processor calculate known results over and over, and compares them.',
    typedArguments: [durationOf('10m', 'how long all processors calculate'), celsiusMax],
  },
  [burnInMemoryStep]: {
    name: burnInMemoryStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: false,
    abortable: true,
    description: 'Fills free memory with patterns, reads it back, and compares it.',
    typedArguments: [
      durationOf('10m', 'no pass begins after that; the first one is always whole'),
      wholeOf('share', [1n, 90n], '75', 'percent of the free memory'),
      wholeOf(
        'corrected_max',
        [0n, 1_000_000n],
        '0',
        'fails when the machine has corrected more errors meanwhile',
      ),
      celsiusMax,
    ],
  },
  [burnInDiskStep]: {
    name: burnInDiskStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: true,
    abortable: true,
    description: 'Writes a pattern over a share of every disk, and reads it back. Data is lost.',
    typedArguments: [
      durationOf('1h', 'writing ends after half of it; what was written is read back whole'),
      wholeOf('share', [1n, 100n], '10', 'percent of each disk, spread over all of it'),
      wholeOf('rate_min', [0n, 100_000n], '0', 'MB/s that a disk must reach; 0: no limit'),
      celsiusMax,
    ],
  },
  [burnInNetworkStep]: {
    name: burnInNetworkStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: false,
    abortable: true,
    description: 'Sends bytes to the agent and back; compares them and the counters of the card.',
    typedArguments: [
      durationOf('10m', 'no exchange begins after that; all must be done by then'),
      wholeOf('size', [1n, 16_384n], '1024', 'MiB to send, and as many to receive'),
      wholeOf('rate_min', [0n, 25n], '0', 'MB/s to reach each way, of 33 at most; 0: no limit'),
      wholeOf('link_min', [0n, 800_000n], '0', 'Mbit/s that the link must have; 0: no limit'),
    ],
  },
} as const satisfies Readonly<Record<string, Description>>;

/** "interface.step" */
export type CleanStepName = keyof typeof cleanSteps;
