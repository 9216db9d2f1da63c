/**
 * Stored deadlines (R5): each fires once, and never because of silence alone, nor of what a run
 * waits for that is not its own.
 */
import { RunOutcome } from '@rackwright/api';
import { endRun } from './engine.ts';
import { isForcedRemoval } from './forced.ts';
import { deadlineFires } from './operation.ts';
import { stepFailure } from './step-failure.ts';
import { activeRun, currentStep, type Turn, waitsForOthers } from './turn.ts';

export function foldDeadlines(turn: Turn): void {
  const run = activeRun(turn.status);
  // A forced removal has deadlines of its own, and ends for none.
  if (run === undefined || isForcedRemoval(turn, run)) return;
  const step = currentStep(run);
  if (step !== undefined && deadlineFires(turn, step.deadline)) {
    const missing = step.name === 'runner.await' ? 'no runner reported from the host' : 'no result';
    const failure = stepFailure('deadline', `${step.name}: ${missing} before its deadline`);
    step.error = failure.message;
    endRun(turn, run, RunOutcome.TIMED_OUT, failure);
    return;
  }
  if (!waitsForOthers(run) && deadlineFires(turn, run.deadline)) {
    const failure = stepFailure(
      'deadline',
      `the run waited too long, at ${step?.name ?? 'its end'}`,
    );
    endRun(turn, run, RunOutcome.TIMED_OUT, failure);
  }
}
