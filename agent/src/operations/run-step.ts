/** Steps that the runner of a boot carries out, and the images that are fetched for them before. */
import { agent, writeImageStep } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import { architectureNamed } from '../images/index.ts';
import type { RunnerOrders } from '../runner-gateway/index.ts';
import { AttemptEnd, type OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { type CommandImages, withImage } from './command-image.ts';
import {
  type HostImageParts,
  type OrderWithImage,
  resumeWithHostImage,
  withHostImage,
} from './host-image.ts';

export interface StepImages {
  /** Absent: commands in images are not run here. */
  readonly images?: CommandImages;
  /** Absent: no image is put onto a disk here. */
  readonly hostImages?: HostImageParts;
}

/**
 * Runs one in-band step in the runner that the boot operation started. A step that this runner
 * did not name in its Hello is not sent to it (R8); an image and secrets that it needs are here
 * before.
 */
export async function runStep(
  orders: RunnerOrders,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  { images, hostImages }: StepImages,
): Promise<FinalResult> {
  const steps = orders.stepsOf(request.bootOperationId);
  if (steps !== undefined && !steps.includes(request.step)) {
    const known = steps.length === 0 ? 'none' : steps.join(', ');
    const message = `the runner has no step ${request.step}; it has ${known}`;
    const result = failure('unsupported', message);
    return request.step === writeImageStep ? untouched(result) : result;
  }
  const value = request;
  const { bootOperationId, image } = request;
  const secretEnvironment = await secretsOf(request, context);
  const order = { case: 'runStep', value } as const;
  if (request.step === writeImageStep) {
    const found = architectureNamed(orders.architectureOf(bootOperationId) ?? '');
    const ordered: OrderWithImage = (image, within) =>
      orders.run({ operation, bootOperationId, order, image: () => image }, within);
    return untouchedBefore(context, (within) =>
      withHostImage(hostImages, operation, request, found, within, ordered),
    );
  }
  const run = (): Promise<FinalResult> =>
    orders.run({ operation, bootOperationId, order, secretEnvironment }, context);
  return image === undefined ? run() : withImage(images, image, request.step, context, run);
}

/**
 * Before `begin` no runner gets an order to write: a step that ends before it has touched no disk.
 */
async function untouchedBefore(
  context: OperationContext,
  act: (context: OperationContext) => Promise<FinalResult>,
): Promise<FinalResult> {
  let hasBegun = false;
  const begin = async (): Promise<void> => {
    await context.begin();
    hasBegun = true;
  };
  try {
    const result = await act({ ...context, begin });
    return hasBegun ? result : untouched(result);
  } catch (error) {
    if (hasBegun || !(error instanceof AttemptEnd)) throw error;
    throw new AttemptEnd(untouched(error.result));
  }
}

function untouched(result: FinalResult): FinalResult {
  switch (result.kind) {
    case 'transientError':
      return { ...result, disksUntouched: true };
    case 'failed':
      // A runner that is gone may have had it from an agent whose disk was put back since.
      return result.type === 'interrupted' ? result : { ...result, disksUntouched: true };
    default:
      return result;
  }
}

/** Resumes a step that the runner may still execute for an earlier start of the agent. */
export function resumeStep(
  orders: RunnerOrders,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  { hostImages }: StepImages,
): Promise<FinalResult | 'interrupted'> {
  const { bootOperationId } = request;
  const order = { case: 'runStep', value: request } as const;
  if (request.step !== writeImageStep) {
    return orders.resume({ operation, bootOperationId, order }, context);
  }
  return resumeWithHostImage(hostImages, operation, request, context, (image, within) =>
    orders.resume({ operation, bootOperationId, order, image }, within),
  );
}

/** Variables that are secrets. Waits for them a bounded time. Rejects with AttemptEnd. */
async function secretsOf(
  { secrets }: agent.RunStep,
  context: OperationContext,
): Promise<Readonly<Record<string, string>>> {
  const environment: Record<string, string> = {};
  for (const { variable, credential, credentialVersion, part } of secrets) {
    const { username, password } = await context.credential(credential, credentialVersion);
    environment[variable] = part === agent.SecretUse_Part.USERNAME ? username : password;
  }
  return environment;
}
