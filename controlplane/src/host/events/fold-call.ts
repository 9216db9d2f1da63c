/** Folds in what came of a webhook's call, as `fold.ts` does with an agent's results. */
import type { OperationId } from '@rackwright/messages';
import { callLater } from '../operation/calls.ts';
import { completeStep, failStep } from '../run/engine.ts';
import { takeOutput } from '../run/step-output.ts';
import { calledStep } from '../run/step-parts.ts';
import { stepFailure } from '../turn/step-failure.ts';
import { activeRun, causedBy, currentStep, type Turn } from '../turn/turn.ts';
import type { CallResult } from '../turn/types.ts';

/** Of a call that is not under way it changes nothing. */
export function foldCall(turn: Turn, id: OperationId, result: CallResult): void {
  const run = activeRun(turn.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined || turn.record.call?.id !== id) return;
  causedBy(turn, 'system', `${calledStep(step)} attempt ${step.attempt}: ${result.kind}`);
  if (result.kind === 'transientError') return callLater(turn, run, result.message);
  takeOutput(turn, run, step, id, result.output);
  if (result.kind === 'complete') completeStep(turn, run, step);
  else {
    const { type, message, detail } = result;
    failStep(turn, run, step, stepFailure(type, message, detail));
  }
}
