/**
 * The steps of a clean that the runner of this release has. The control plane plans with them until
 * a runner has told its own; the runner runs them. A step without a function does not compile.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { StepDescriptionSchema } from './gen/rackwright/agent/v1/report_pb.ts';
import { RerunClass } from './gen/rackwright/v1/run_pb.ts';
import { eraseMetadataStep, eraseStep } from './step-names.ts';

type Description = MessageInitShape<typeof StepDescriptionSchema>;

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
} as const satisfies Readonly<Record<string, Description>>;

/** "interface.step" */
export type CleanStepName = keyof typeof cleanSteps;
