/**
 * Acts after a failed attempt of a template's step.
 *
 * Must not: decide which policy applies (`step-policy.ts`) or begin anything (`engine.ts`).
 */
import {
  hostWaitOf,
  type Run,
  type RunFailure,
  RunPhase,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { noteOpenOperation } from '../operation/open-operations.ts';
import type { Postponement } from '../operation/operation.ts';
import {
  type Pass,
  type PassView,
  stopWaiting,
  timeAfter,
  timeNow,
  waitFor,
} from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { skipReasons } from '../pass/skip-reason.ts';
import { truncate } from '../pass/step-failure.ts';
import { engineSteps, isOfTemplate } from '../pass/step-names.ts';
import { calledStep, partOf } from './step-parts.ts';
import { afterAttempt, type LastAttempt } from './step-policy.ts';
import { skipSteps } from './step-start.ts';

/** The longest stored error of one step, in characters: the run's own error is longer. */
const errorCharactersMax = 256;

/** Whether a failed step waits for a person: it does not go on automatically. */
export function isHeldAfter({ phase, waiting }: RunView, step: StepView): boolean {
  const { name } = step;
  return (
    isOfTemplate(step) &&
    name !== engineSteps.hold &&
    phase === RunPhase.WAITING &&
    hostWaitOf(waiting) === 'hold'
  );
}

/** The result. */
export type FollowOutcome =
  /** Nothing remains: the run ends with the failure. */
  | { readonly kind: 'end' }
  | { readonly kind: 'moved' }
  /** The step is to be started again. */
  | { readonly kind: 'again'; readonly postponement: Postponement };

/** Applies the template's policy after a failed attempt. */
export function followTemplate(
  pass: Pass,
  run: Run,
  step: RunStep,
  failure: RunFailure,
  attempt: LastAttempt,
): FollowOutcome {
  const next = afterAttempt(run, step, failure, attempt);
  if (next.kind === 'fail') return { kind: 'end' };
  noteOpenOperation(pass);
  delete pass.record.operation;
  delete pass.record.call;
  delete step.deadline;
  step.failures += 1;
  step.error = truncate(failure.message, errorCharactersMax);
  switch (next.kind) {
    case 'retry':
      return { kind: 'again', postponement: pauseBefore(pass, run, step, failure) };
    case 'continue':
      giveUp(pass, run, step);
      stopWaiting(pass, run);
      break;
    case 'hold':
      waitFor(pass, run, 'hold', `${calledStep(step)} failed: ${failure.message}`);
      break;
    case 'handler':
      giveUp(pass, run, step);
      stopWaiting(pass, run);
      callHandler(run, step, next.index);
      run.error = failure;
  }
  return { kind: 'moved' };
}

/** Records that another attempt follows, and when. */
function pauseBefore(
  pass: PassView,
  run: Run,
  step: StepView,
  { message }: RunFailure,
): Postponement {
  const { retryDelayMs: firstMs, retryDelayMaxMs: delayMsMax } = pass.snapshot.timing;
  const key = `${pass.host.uid}/${run.number}/${run.currentStep}`;
  const attempt = step.failures;
  const delayMs = backoffDelayMs({ attempt, firstMs, delayMsMax, key });
  const left = step.retries - step.failures + 1;
  waitFor(pass, run, 'retry', `${calledStep(step)} is tried again (${left} left): ${message}`);
  return { notBefore: timeAfter(pass, delayMs) };
}

/** The step has failed; the rest of its part does not begin. */
function giveUp(pass: PassView, run: Run, step: RunStep): void {
  step.state = StepState.FAILED;
  step.endTime = timeNow(pass);
  const { to } = partOf(run.steps, run.currentStep);
  skipSteps(run.steps.slice(run.currentStep + 1, to + 1), skipReasons.partFailed(calledStep(step)));
  run.currentStep = to + 1;
}

/** All other steps that have not begun are skipped; the handler goes next. */
function callHandler(run: Run, failed: StepView, index: number): void {
  const { steps } = run;
  const at = steps.findIndex((step, position) => position >= index && isOfTemplate(step));
  const { to } = partOf(steps, at);
  const others = steps.filter((_, position) => position < index || position > to);
  skipSteps(others, skipReasons.handlerCalled(calledStep(failed), String(steps[at]?.title)));
  run.currentStep = index;
}
