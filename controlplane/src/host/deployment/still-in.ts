/**
 * How long a deployment leaves its host unchanged (a reimage in service): while the image is
 * fetched, and until the order that takes the host out of service is sent. Until then the run may
 * end without any effect.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import {
  type Run,
  type RunFailure,
  RunKind,
  RunPhase,
  StepState,
  type store,
} from '@rackwright/messages';
import { firstOnHost } from '../pass/brake.ts';
import { hasPassed, type Pass, type PassView } from '../pass/pass.ts';
import type { DeepReadonly, RunView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';

const deploying: ReadonlySet<RunKind> = new Set([RunKind.PROVISION, RunKind.REIMAGE]);

/** Whether this run is a deployment without any effect on its host yet. */
export function isStillInService(
  run: RunView,
  operation: DeepReadonly<store.OperationRecord> | undefined,
): boolean {
  if (!deploying.has(run.kind) || run.phase === RunPhase.ENDED) return false;
  const out = firstOnHost(run.steps);
  if (run.currentStep !== out) return run.currentStep < out;
  const { attempt = 0 } = run.steps[out] ?? {};
  // It may wait for the end of a freeze, for a slot in a wipe budget, or for its agent.
  return attempt === 0 || (attempt === 1 && operation?.sendTime === undefined);
}

/**
 * Why the host may no longer be taken out of service; undefined: it may be, or it is out already.
 */
export function tooLateToTakeOut(pass: PassView, run: RunView): RunFailure | undefined {
  const { record } = pass;
  const end = record.deployNotAfter;
  if (end === undefined || !hasPassed(pass, end)) return undefined;
  if (run.currentStep !== firstOnHost(run.steps) || !isStillInService(run, record.operation))
    return undefined;
  const by = toJson(TimestampSchema, end);
  return stepFailure('tooLate', `the host could not be taken out before ${by}, and stays as it is`);
}

/** The step that would take the host out has not begun, whatever it waited for. */
export function resetStepBeforeTakeOut({ record }: Pass, run: Run): void {
  const step = run.steps[firstOnHost(run.steps)];
  if (step === undefined || run.currentStep !== firstOnHost(run.steps)) return;
  if (!isStillInService(run, record.operation)) return;
  Object.assign(step, { state: StepState.PENDING, attempt: 0 });
  delete step.startTime;
  delete record.operation;
}
