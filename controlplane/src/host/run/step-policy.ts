/**
 * What follows a failed attempt of a step with a title (a template's, or one of the site's own in a
 * clean): another attempt, or its policy when none is left. Pure.
 *
 * Invariants:
 * 1. An engine step between the template's steps has no policy: its failure ends the run. So do a
 *    foreign machine and an unknown result.
 * 2. A step that hands the machine over is not retried, nor is an order that the BMC may still be
 *    carrying out, nor a step without a report that must not run twice: only its policy applies.
 * 3. A handler calls no other: one that fails ends the run, which ends with the failure that called
 *    it.
 */
import {
  FailureType,
  RerunClass,
  type Run,
  type RunFailure,
  type RunStep,
} from '@rackwright/messages';
import { policyOfFailure } from '../pass/failure-policy.ts';
import { engineSteps, isOfTemplate } from '../pass/step-names.ts';
import { partOf } from './step-parts.ts';
import { isOrderedOnce } from './steps/of-agent.ts';

export type NextStep =
  | { readonly kind: 'fail' | 'retry' | 'continue' | 'hold' }
  /** The position where the handler's part of the list begins, including its boot. */
  | { readonly kind: 'handler'; readonly index: number };

const fail: NextStep = { kind: 'fail' };

/** An attempt that is no longer awaited may still be running: its agent is away. */
export type LastAttempt = 'over' | 'unawaited';

export function afterAttempt(
  run: Run,
  step: RunStep,
  { type }: Pick<RunFailure, 'type'>,
  attempt: LastAttempt,
): NextStep {
  if (!isOfTemplate(step) || policyOfFailure(type).template === 'fail') return fail;
  if (step.failures < step.retries && mayRetryStep(step, attempt)) return { kind: 'retry' };
  const policy = type === FailureType.DEADLINE ? step.onTimeout : step.onFailure;
  switch (policy) {
    case '':
    case 'fail':
      return fail;
    case 'continue':
    case 'hold':
      return { kind: policy };
    default:
      return callOf(run, step, policy);
  }
}

function mayRetryStep(step: RunStep, attempt: LastAttempt): boolean {
  if (step.handOff || isOrderedOnce(step)) return false;
  return attempt === 'over' || step.rerunClass !== RerunClass.NEVER_TWICE;
}

function callOf({ steps }: Run, { handler }: RunStep, title: string): NextStep {
  const at = steps.findIndex((step) => step.handler && step.title === title);
  if (at === -1 || handler) return fail;
  return { kind: 'handler', index: beginOf(steps, at) };
}

/** A boot directly before the step belongs to it. */
function beginOf(steps: readonly RunStep[], at: number): number {
  const { from } = partOf(steps, at);
  const before = steps[from - 1];
  if (before === undefined || before.name !== engineSteps.awaitRunner || isOfTemplate(before)) {
    return from;
  }
  return partOf(steps, from - 1).from;
}
