/** The progress of a run. Pure. */
import { type Run, RunPhase, type RunStep, StepState } from '@rackwright/messages';

export interface RunProgress {
  readonly done: number;
  readonly all: number;
  /** Per cent of the whole run: steps count alike, the present one by its percent. */
  readonly percent: number;
}

/** `stepPercent`: of the step under way, as the host says it. */
export function progressOf(run: Pick<Run, 'steps' | 'phase'>, stepPercent: number): RunProgress {
  const { steps, phase } = run;
  const counted = steps.filter(({ handler }) => !handler);
  const done = counted.filter(isOver).length;
  const all = counted.length;
  if (all === 0) return { done, all, percent: phase === RunPhase.ENDED ? 100 : 0 };
  const part = phase === RunPhase.ENDED ? 0 : Math.min(100, Math.max(0, stepPercent)) / 100;
  return { done, all, percent: Math.min(100, Math.floor(((done + part) / all) * 100)) };
}

/** The step under way; undefined: none is. */
export function presentStep({ steps, currentStep }: Pick<Run, 'steps' | 'currentStep'>) {
  return steps[currentStep];
}

function isOver({ state }: RunStep): boolean {
  switch (state) {
    case StepState.SUCCEEDED:
    case StepState.FAILED:
    case StepState.SKIPPED:
      return true;
    default:
      return false;
  }
}
