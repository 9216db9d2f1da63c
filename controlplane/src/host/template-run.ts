/**
 * Runs of templates on the step engine: how one starts, and what follows a failed attempt of one of
 * its steps.
 *
 * Must not: decide which policy applies (`step-policy.ts`) or whether a step runs (`step-turn.ts`).
 */
import {
  HostState,
  type Run,
  type RunFailure,
  RunKind,
  RunPhase,
  type RunStep,
  StepState,
} from '@rackwright/api';
import { backoffDelayMs } from '@rackwright/results';
import { enterRun, retryStep } from './engine.ts';
import { knownSteps } from './known-steps.ts';
import { leaveOpen } from './open-operations.ts';
import type { Postponement } from './operation.ts';
import { cut } from './step-failure.ts';
import { calledStep, partOf } from './step-parts.ts';
import { afterAttempt } from './step-policy.ts';
import { skipSteps } from './step-turn.ts';
import { stepsOfWorkflow } from './template-steps.ts';
import { later, now, stopWaiting, type Turn, waitFor } from './turn.ts';
import type { WorkflowRequest } from './types.ts';

/** Longest error of one step that a run keeps, in characters: the run's own is longer. */
const errorCharactersMax = 256;

/** Starts the run of a workflow. What is wrong with it has been looked at before. */
export function startWorkflow(turn: Turn, request: WorkflowRequest, by: string): void {
  const { workflowRun, templateDigest, timeoutMs } = request;
  const steps = workflowSteps(turn, request);
  const more = { requestedBy: by, manual: true, steps, workflowRun, templateDigest };
  enterRun(turn, RunKind.WORKFLOW, more, timeoutMs);
}

/** The steps that the run of a request has; a plan shows the same. */
export function workflowSteps(
  turn: Pick<Turn, 'status' | 'context'>,
  { steps }: Pick<WorkflowRequest, 'steps'>,
): RunStep[] {
  const { state, poweredOn } = turn.status;
  // A provisioned host whose power was never observed runs, as far as we know.
  const isOnInUse = state === HostState.PROVISIONED && poweredOn !== false;
  return stepsOfWorkflow({ known: knownSteps(turn.context), isOnInUse }, steps);
}

/** Whether a failed step waits for a person: nothing of it goes on by itself. */
export function isHeldAfter({ phase, waiting }: Run, { name, title }: RunStep): boolean {
  return (
    title !== '' && name !== 'hold' && phase === RunPhase.WAITING && waiting?.reason === 'hold'
  );
}

/** Does what the template says after a failed attempt; false: the run ends with it. */
export function followTemplate(
  turn: Turn,
  run: Run,
  step: RunStep,
  failure: RunFailure,
  isKnown: boolean,
): boolean {
  const next = afterAttempt(run, step, failure, isKnown);
  if (next.kind === 'fail') return false;
  leaveOpen(turn);
  delete turn.record.operation;
  delete turn.record.call;
  delete step.deadline;
  step.failures += 1;
  step.error = cut(failure.message, errorCharactersMax);
  switch (next.kind) {
    case 'retry':
      tryAgain(turn, run, step, failure);
      break;
    case 'continue':
      giveUp(turn, run, step);
      stopWaiting(turn, run);
      break;
    case 'hold':
      waitFor(turn, run, 'hold', `${calledStep(step)} failed: ${failure.message}`);
      break;
    case 'handler':
      giveUp(turn, run, step);
      stopWaiting(turn, run);
      callHandler(run, step, next.index);
      run.error = failure;
  }
  return true;
}

function tryAgain(turn: Turn, run: Run, step: RunStep, { message }: RunFailure): void {
  const { retryDelayMs: firstMs, retryDelayMaxMs: longestMs } = turn.context.timing;
  const key = `${turn.host.uid}/${run.number}/${run.currentStep}`;
  const attempt = step.failures;
  const delayMs = backoffDelayMs({ attempt, firstMs, longestMs, key });
  const left = step.retries - step.failures + 1;
  waitFor(turn, run, 'retry', `${calledStep(step)} is tried again (${left} left): ${message}`);
  restartStep(turn, run, step, { notBefore: later(turn, delayMs) });
}

/** Another attempt of a template's step: from its first one on, where it is several. */
export function restartStep(turn: Turn, run: Run, step: RunStep, postponement: Postponement): void {
  const { from, to } = partOf(run.steps, run.currentStep);
  if (step.title === '' || from === run.currentStep) {
    retryStep(turn, run, step, {}, postponement);
    return;
  }
  for (const each of run.steps.slice(from, to + 1)) each.failures = step.failures;
  for (const each of run.steps.slice(from, run.currentStep + 1)) {
    each.state = StepState.PENDING;
    delete each.deadline;
    delete each.endTime;
  }
  run.currentStep = from;
}

/** The step has failed; what belongs to it does not begin any more. */
function giveUp(turn: Turn, run: Run, step: RunStep): void {
  step.state = StepState.FAILED;
  step.endTime = now(turn);
  const { to } = partOf(run.steps, run.currentStep);
  skipSteps(run.steps.slice(run.currentStep + 1, to + 1), `${calledStep(step)} failed`);
  run.currentStep = to + 1;
}

/** Everything else that has not begun is left out; the handler's turn comes next. */
function callHandler(run: Run, failed: RunStep, index: number): void {
  const { steps } = run;
  const at = steps.findIndex(({ title }, place) => place >= index && title !== '');
  const { to } = partOf(steps, at);
  const others = steps.filter((_, place) => place < index || place > to);
  skipSteps(others, `${calledStep(failed)} failed, and ${steps[at]?.title} was called`);
  run.currentStep = index;
}
