/**
 * Parts of a workflow's list: steps that stand and fall together. Those of one title are one step
 * of the template; between them stand boots, and at the end what leaves the host as it was. Pure.
 */
import { type Run, type RunStep, StepState } from '@rackwright/messages';
import { engineSteps, isBootStep } from '../pass/step-names.ts';

/** Places in a list, both included. */
export interface Part {
  readonly from: number;
  readonly to: number;
}

/** The part that a step belongs to. */
export function partOf(steps: readonly RunStep[], index: number): Part {
  const title = steps[index]?.title ?? '';
  const isStart = (at: number) =>
    steps[at - 1]?.title !== title || (title === '' && steps[at]?.name === engineSteps.off);
  let from = index;
  while (!isStart(from)) from -= 1;
  let to = index;
  while (steps[to + 1]?.title === title && !isStart(to + 1)) to += 1;
  return { from, to };
}

/** Whether the runner is up when the turn of the step at `index` comes, as far as is known. */
export function isRunnerUp({ steps }: Run, index: number): boolean {
  const last = steps.findLast((step, at) => at < index && step.attempt > 0 && movesRunner(step));
  return last?.name === engineSteps.awaitRunner && last.state === StepState.SUCCEEDED;
}

/** Whether a step brings the runner or takes it away. */
export function movesRunner({ name, handOff }: RunStep): boolean {
  return handOff || name.startsWith('power.') || name === engineSteps.awaitRunner;
}

/** How people read a step: by its own name, where it has one. */
export function calledStep({ title, name }: RunStep): string {
  return title === '' ? name : title;
}

/** Where a run is, in words. */
export function placeOf({ steps, currentStep }: Run): string {
  const step = steps[currentStep];
  return step === undefined ? 'its end' : calledStep(step);
}

/** Whether a part boots the runner for the step behind it. */
export function isBootPart(steps: readonly RunStep[], { from, to }: Part): boolean {
  return (
    steps[from]?.title === '' && steps.slice(from, to + 1).some(({ name }) => isBootStep(name))
  );
}
