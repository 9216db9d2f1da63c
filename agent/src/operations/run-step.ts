import { agent } from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import type { RunnerOrders } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { type CommandImages, withImage } from './command-image.ts';

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
  images: CommandImages | undefined,
): Promise<FinalResult> {
  const steps = orders.stepsOf(request.bootOperationId);
  if (steps !== undefined && !steps.includes(request.step)) {
    const known = steps.length === 0 ? 'none' : steps.join(', ');
    return failure('unsupported', `the runner has no step ${request.step}; it has ${known}`);
  }
  const value = request;
  const { bootOperationId, image } = request;
  const secretEnvironment = await secretsOf(request, context);
  const order = { case: 'runStep', value } as const;
  const run = (): Promise<FinalResult> =>
    orders.run({ operation, bootOperationId, order, secretEnvironment }, context);
  return image === undefined ? run() : withImage(images, image, request.step, context, run);
}

/** Variables that are secrets, as far as they have come. Rejects with AttemptEnd. */
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
