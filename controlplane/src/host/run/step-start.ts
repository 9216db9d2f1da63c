/**
 * What happens to a workflow's step when the run reaches it: it runs, or it is skipped, and then
 * the run says why. Pure.
 *
 * Invariants:
 * 1. The decision is made once, before anything of the step has been ordered, from the results of
 *    earlier steps. A step that already ran runs again without a new decision: it was reset on
 *    purpose.
 * 2. The runner is booted only for a step that runs and needs it, and only when it is not up.
 */
import { type Run, RunKind, type RunStep, StepState } from '@rackwright/messages';
import { conditionHolds, type StepOutcome } from '@rackwright/template';
import { type SkipReason, skip, skipReasons } from '../pass/skip-reason.ts';
import { isOfTemplate } from '../pass/step-names.ts';
import { isBootPart, isPlannedToSkip, isRunnerUp, partOf, type StepRange } from './step-parts.ts';

/** Steps of a workflow that do not run, from the present one on, and why. */
export interface UnneededPart {
  readonly steps: readonly RunStep[];
  readonly why: SkipReason;
}

/** Undefined: the present step runs. */
export function unneededPart(run: Run): UnneededPart | undefined {
  if (run.kind !== RunKind.WORKFLOW) return undefined;
  const { steps, currentStep } = run;
  const part = partOf(steps, currentStep);
  if (part.from !== currentStep || steps[currentStep]?.attempt !== 0) return undefined;
  const why = whyNot(run, part);
  return why === undefined ? undefined : { steps: steps.slice(part.from, part.to + 1), why };
}

/** Skips steps that have not begun. */
export function skipSteps(steps: readonly RunStep[], why: SkipReason): void {
  for (const step of steps) {
    if (step.state === StepState.PENDING) skip(step, why);
  }
}

function whyNot(run: Run, part: StepRange): SkipReason | undefined {
  const { steps } = run;
  const step = steps[part.from];
  if (step === undefined) return undefined;
  if (isOfTemplate(step)) return whyNotTitled(run, step, part.from);
  const up = isRunnerUp(run, part.from);
  if (!isBootPart(steps, part)) return up ? undefined : skipReasons.runnerDown;
  const next = steps[part.to + 1];
  if (next !== undefined && whyNotTitled(run, next, part.to + 1) !== undefined) {
    return skipReasons.nextSkipped(next.title);
  }
  return up ? skipReasons.runnerUp : undefined;
}

function whyNotTitled(run: Run, step: RunStep, index: number): SkipReason | undefined {
  if (isPlannedToSkip(step)) return { cause: step.skipCause, text: step.skippedBecause };
  if (step.handler && run.error === undefined) return skipReasons.noCaller;
  if (step.condition !== '' && !conditionHolds(step.condition, outcomesBefore(run, index))) {
    return skipReasons.condition(step.condition);
  }
  const isUp = step.arguments['power'] === 'powerOn' && isRunnerUp(run, index);
  return isUp ? skipReasons.runnerUp : undefined;
}

/** The results of the template's steps before a position, by their own names. */
export function outcomesBefore({ steps }: Run, index: number): ReadonlyMap<string, StepOutcome> {
  const outcomes = new Map<string, StepOutcome>();
  for (const step of steps.slice(0, index)) {
    if (!isOfTemplate(step)) continue;
    const failed = outcomes.get(step.title)?.state === StepState.FAILED;
    outcomes.set(step.title, {
      state: failed ? StepState.FAILED : step.state,
      exitCode: step.exit?.code,
      lastOutput: step.exit?.lastOutput ?? '',
    });
  }
  return outcomes;
}
