import type { agent } from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import type { RunnerOrders } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';

/** Takes the in-band inventory: the runner that the boot operation started does it. */
export function inspect(
  orders: RunnerOrders,
  operation: agent.Operation,
  request: agent.Inspect,
  context: OperationContext,
): Promise<FinalResult> {
  const order = { case: 'inspect', value: request } as const;
  return orders.run({ operation, bootOperationId: request.bootOperationId, order }, context);
}
