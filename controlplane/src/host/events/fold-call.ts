/** Folds in the result of a webhook's call, as `fold.ts` does with an agent's results. */
import { actors, type OperationId } from '@rackwright/messages';
import { callLater } from '../operation/calls.ts';
import { activeRun, currentStep, type Pass, recordCause } from '../pass/pass.ts';
import { stepFailure } from '../pass/step-failure.ts';
import type { CallResult } from '../pass/types.ts';
import { completeStep, failStep } from '../run/engine.ts';
import { takeOutput } from '../run/step-output.ts';
import { calledStep } from '../run/step-parts.ts';

/** A result for a call that is not in progress changes nothing. */
export function foldCall(pass: Pass, id: OperationId, result: CallResult): void {
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined || pass.record.call?.id !== id) return;
  recordCause(pass, actors.system, `${calledStep(step)} attempt ${step.attempt}: ${result.kind}`);
  if (result.kind === 'transientError') return callLater(pass, run, result.message);
  takeOutput(pass, run, step, id, result.output);
  if (result.kind === 'complete') completeStep(pass, run, step);
  else {
    const { type, message, detail } = result;
    failStep(pass, run, step, stepFailure(type, message, detail));
  }
}
