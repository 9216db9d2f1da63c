/** The inventory of a host: its runner's findings, and beside them its BMC's lists. */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { RunnerOrder, RunnerOrders } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';
import type { BmcLists, DriveLists } from './drive-lists.ts';

export interface InspectParts {
  readonly orders: RunnerOrders;
  readonly driveLists: DriveLists;
}

/** Takes the in-band inventory: the runner that the boot operation started does it. */
export async function inspect(
  parts: InspectParts,
  operation: agent.Operation,
  request: agent.Inspect,
  context: OperationContext,
): Promise<FinalResult> {
  const beside = askBmc(parts, operation, request, context);
  try {
    const result = await parts.orders.run(orderOf(operation, request), context);
    return await withLists(result, beside.lists);
  } finally {
    beside.end();
  }
}

/** Resumes an inspection from before a restart. */
export async function resumeInspect(
  parts: InspectParts,
  operation: agent.Operation,
  request: agent.Inspect,
  context: OperationContext,
): Promise<FinalResult | 'interrupted'> {
  const beside = askBmc(parts, operation, request, context);
  try {
    const result = await parts.orders.resume(orderOf(operation, request), context);
    return result === 'interrupted' ? result : await withLists(result, beside.lists);
  } finally {
    beside.end();
  }
}

/** The runner does not get the BMC's address and credentials. */
function orderOf(operation: agent.Operation, request: agent.Inspect): RunnerOrder {
  const { bootOperationId, bootMedia } = request;
  const value = create(agent.InspectSchema, { bootOperationId, bootMedia });
  return { operation, bootOperationId, order: { case: 'inspect', value } };
}

/** The BMC is asked while the runner inspects; `end` gives up the rest of the questions. */
function askBmc(
  { driveLists }: InspectParts,
  { hostUid }: agent.Operation,
  request: agent.Inspect,
  context: OperationContext,
): { readonly lists: Promise<BmcLists | undefined>; end(): void } {
  const ended = new AbortController();
  const signal = AbortSignal.any([context.signal, ended.signal]);
  const lists = driveLists.readForInspection(hostUid, request, { ...context, signal });
  return { lists, end: () => ended.abort() };
}

/** An inspection that has failed waits for no list. */
async function withLists(
  result: FinalResult,
  lists: Promise<BmcLists | undefined>,
): Promise<FinalResult> {
  if (result.kind !== 'complete' || result.observations === undefined) return result;
  return { ...result, observations: { ...result.observations, ...(await lists) } };
}
