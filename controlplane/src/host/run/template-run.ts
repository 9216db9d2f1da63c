/** How the run of a workflow starts, and which steps it has. */
import { type Actor, HostState, RunKind, type RunStep } from '@rackwright/messages';
import type { Pass, PassView } from '../pass/pass.ts';
import type { WorkflowRequest } from '../pass/types.ts';
import { enterRun } from './engine.ts';
import { knownSteps } from './known-steps.ts';
import { stepsOfWorkflow } from './template-steps.ts';

/** Starts the run of a workflow. The request was checked before. */
export function startWorkflow(pass: Pass, request: WorkflowRequest, by: Actor): void {
  const { workflowRun, workflowUid, templateDigest, timeoutMs } = request;
  const steps = workflowSteps(pass, request);
  const named = { workflowRun, workflowUid, templateDigest };
  const more = { requestedBy: by, manual: true, steps, ...named };
  enterRun(pass, RunKind.WORKFLOW, more, timeoutMs);
}

/** The steps of a request's run; a plan shows the same. */
export function workflowSteps(
  pass: Pick<PassView, 'status' | 'snapshot'>,
  { steps }: Pick<WorkflowRequest, 'steps'>,
): RunStep[] {
  const { state, poweredOn, dirty } = pass.status;
  // A provisioned host whose power was never observed counts as running.
  const isOnInUse = state === HostState.PROVISIONED && poweredOn !== false;
  const isDirty = state === HostState.MANAGEABLE && dirty;
  return stepsOfWorkflow({ known: knownSteps(pass.snapshot), isOnInUse, isDirty }, steps);
}
