/** Steps that the agent carries out by itself, with neither a runner nor the BMC. */
import { create } from '@bufbuild/protobuf';
import { agent, awaitImageStep, fetchImageStep, RerunClass } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { type AwaitImageParts, awaitImage } from './await-image.ts';
import { fetchImage } from './fetch-image.ts';
import type { HostImageParts } from './host-image.ts';

/** Each part may be absent: then its step is neither announced nor run here. */
export interface OwnStepParts {
  readonly awaitImage?: AwaitImageParts;
  readonly hostImages?: HostImageParts;
}

export interface OwnStep {
  readonly description: agent.StepDescription;
  run(
    operation: agent.Operation,
    request: agent.RunStep,
    context: OperationContext,
  ): Promise<FinalResult>;
}

/** Those that there are parts for, by name. */
export function ownSteps(parts: OwnStepParts): ReadonlyMap<string, OwnStep> {
  const steps: OwnStep[] = [];
  const { awaitImage: awaiting } = parts;
  if (awaiting !== undefined) {
    const description = describe(awaitImageStep, 'Waits until the host says that it runs.');
    steps.push({ description, run: (...args) => awaitImage(awaiting, ...args) });
  }
  const { hostImages } = parts;
  if (hostImages !== undefined) {
    const text = 'Fetches the image of the host into the cache of its rack.';
    const description = describe(fetchImageStep, text);
    steps.push({ description, run: (...args) => fetchImage(hostImages, ...args) });
  }
  return new Map(steps.map((step) => [step.description.name, step]));
}

function describe(name: string, description: string): agent.StepDescription {
  const how = { priority: 0, rerunClass: RerunClass.SAFE, destructive: false, abortable: true };
  return create(agent.StepDescriptionSchema, { name, description, ...how });
}
