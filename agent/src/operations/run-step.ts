import type { agent } from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import type { RunnerOrders } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';

/**
 * Runs one in-band step in the runner that the boot operation started. A step that this runner
 * did not name in its Hello is not sent to it (R8).
 */
export async function runStep(
  orders: RunnerOrders,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const steps = orders.stepsOf(request.bootOperationId);
  if (steps !== undefined && !steps.includes(request.step)) {
    const known = steps.length === 0 ? 'none' : steps.join(', ');
    return failure('unsupported', `the runner has no step ${request.step}; it has ${known}`);
  }
  const order = { case: 'runStep', value: request } as const;
  return orders.run({ operation, bootOperationId: request.bootOperationId, order }, context);
}
