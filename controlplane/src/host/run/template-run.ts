/** How the run of a workflow starts, and which steps it has. */
import { HostState, RunKind, type RunStep } from '@rackwright/messages';
import type { Turn } from '../turn/turn.ts';
import type { WorkflowRequest } from '../turn/types.ts';
import { enterRun } from './engine.ts';
import { knownSteps } from './known-steps.ts';
import { stepsOfWorkflow } from './template-steps.ts';

/** Starts the run of a workflow. What is wrong with it has been looked at before. */
export function startWorkflow(turn: Turn, request: WorkflowRequest, by: string): void {
  const { workflowRun, workflowUid, templateDigest, timeoutMs } = request;
  const steps = workflowSteps(turn, request);
  const named = { workflowRun, workflowUid, templateDigest };
  const more = { requestedBy: by, manual: true, steps, ...named };
  enterRun(turn, RunKind.WORKFLOW, more, timeoutMs);
}

/** The steps that the run of a request has; a plan shows the same. */
export function workflowSteps(
  turn: Pick<Turn, 'status' | 'context'>,
  { steps }: Pick<WorkflowRequest, 'steps'>,
): RunStep[] {
  const { state, poweredOn, dirty } = turn.status;
  // A provisioned host whose power was never observed runs, as far as we know.
  const isOnInUse = state === HostState.PROVISIONED && poweredOn !== false;
  const isDirty = state === HostState.MANAGEABLE && dirty;
  return stepsOfWorkflow({ known: knownSteps(turn.context), isOnInUse, isDirty }, steps);
}
