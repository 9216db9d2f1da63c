/**
 * Parts of a workflow's list: steps that succeed or fail together. Those with one title form one
 * step of the template; between them are boots, and at the end the steps that restore the host.
 * Pure.
 */
import { type Run, SkipCause, StepState } from '@rackwright/messages';
import type { RunView, StepView } from '../pass/read-only.ts';
import { engineSteps, isBootStep, isOfTemplate, movesRunnerByName } from '../pass/step-names.ts';

/** Positions in a list, both inclusive. */
export interface StepRange {
  readonly from: number;
  readonly to: number;
}

/** The part that a step belongs to. */
export function partOf(steps: readonly StepView[], index: number): StepRange {
  const title = steps[index]?.title ?? '';
  const isStart = (at: number) =>
    steps[at - 1]?.title !== title ||
    (!isOfTemplate({ title }) && steps[at]?.name === engineSteps.off);
  let from = index;
  while (!isStart(from)) from -= 1;
  let to = index;
  while (steps[to + 1]?.title === title && !isStart(to + 1)) to += 1;
  return { from, to };
}

/** Whether the runner is up when the step at `index` begins, as far as is known. */
export function isRunnerUp({ steps }: Run, index: number): boolean {
  const last = steps.findLast((step, at) => at < index && step.attempt > 0 && movesRunner(step));
  return last?.name === engineSteps.awaitRunner && last.state === StepState.SUCCEEDED;
}

/** Whether a step boots the runner or ends it. */
export function movesRunner({ name, handOff }: StepView): boolean {
  return handOff || movesRunnerByName(name);
}

/** The name of a step for people: its own title, where it has one. */
export function calledStep(step: StepView): string {
  return isOfTemplate(step) ? step.title : step.name;
}

/** Whether it was known when the run was planned that the step is skipped. */
export function isPlannedToSkip({ skipCause }: Pick<StepView, 'skipCause'>): boolean {
  return skipCause !== SkipCause.UNSPECIFIED;
}

/** The position of a run, in words. */
export function stepPosition({ steps, currentStep }: RunView): string {
  const step = steps[currentStep];
  return step === undefined ? 'its end' : calledStep(step);
}

/** Whether a part boots the runner for the step after it. */
export function isBootPart(steps: readonly StepView[], { from, to }: StepRange): boolean {
  const first = steps[from];
  if (first === undefined || isOfTemplate(first)) return false;
  return steps.slice(from, to + 1).some(({ name }) => isBootStep(name));
}
