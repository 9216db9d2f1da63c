/**
 * Why a step is skipped without a person: each cause with its text for people. Only the cause
 * decides.
 */
import { type RunStep, SkipCause, StepState } from '@rackwright/messages';

export interface SkipReason {
  readonly cause: SkipCause;
  readonly text: string;
}

/** Those that are known before a run begins come with the rendered template. */
export const skipReasons = {
  condition: (condition: string): SkipReason => {
    return { cause: SkipCause.CONDITION, text: `its condition does not hold: ${condition}` };
  },
  noCaller: { cause: SkipCause.NO_CALLER, text: 'no step has called it' },
  runnerUp: { cause: SkipCause.RUNNER_UP, text: 'the runner is up' },
  runnerDown: { cause: SkipCause.RUNNER_DOWN, text: 'the runner is not up' },
  nextSkipped: (next: string): SkipReason => {
    return { cause: SkipCause.NEXT_SKIPPED, text: `${next} is skipped` };
  },
  partFailed: (step: string): SkipReason => {
    return { cause: SkipCause.PART_FAILED, text: `${step} failed` };
  },
  partSkipped: (step: string): SkipReason => {
    return { cause: SkipCause.PART_SKIPPED, text: `${step} was skipped` };
  },
  handlerCalled: (failed: string, handler: string): SkipReason => {
    return { cause: SkipCause.HANDLER_CALLED, text: `${failed} failed, and ${handler} was called` };
  },
  leftUp: { cause: SkipCause.LEFT_UP, text: 'the clean that follows works in this boot' },
  sharedBoot: (run: string): SkipReason => {
    return { cause: SkipCause.SHARED_BOOT, text: `the runner is up since ${run}` };
  },
  nothingToRead: {
    cause: SkipCause.NOTHING_TO_READ,
    text: 'nothing that was erased has to be read again',
  },
} as const;

/** Skips a step. */
export function skip(step: RunStep, { cause, text }: SkipReason): void {
  step.state = StepState.SKIPPED;
  step.skipCause = cause;
  step.skippedBecause = text;
}

/** Lets a step that was skipped run after all. */
export function unskip(step: RunStep): void {
  step.skipCause = SkipCause.UNSPECIFIED;
  step.skippedBecause = '';
}
