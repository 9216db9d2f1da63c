/**
 * One boot for two runs: the clean that follows an inspection of the goal works in the runner that
 * is up already (DESIGN §5).
 *
 * Invariants:
 * 1. Each of the two is a run of its own. The inspection ends, and whatever may keep a host from
 *    its clean is judged, before the clean begins.
 * 2. A host whose clean does not begin in that very pass is switched off, as after any inspection.
 * 3. The clean inspects the host itself, in this boot, and goes by that alone. Nothing is erased by
 *    what the inspection saw.
 * 4. The clean's list names the boot. Where that is over, the clean boots another runner.
 */
import { HoldScope, type Run, RunKind, StepState } from '@rackwright/messages';
import { unknownBootMacs } from '../erasure/hardware.ts';
import { hasLooked } from '../erasure/power-cycle.ts';
import { bootOperationId } from '../operation/boots.ts';
import { currentStep, goal, inventoryNow, type Pass, runName } from '../pass/pass.ts';
import { engineSteps, intoRunner } from '../pass/step-names.ts';
import { failStep } from '../run/engine.ts';
import { replan } from '../run/replan.ts';
import { missing, wantedRun } from './goal.ts';
import { holdOf } from './refusal.ts';

/** Leaves the host on that an inspection is about to switch off, where its clean comes next. */
export function leaveUp(pass: Pass, run: Run): void {
  const step = currentStep(run);
  const isLast = run.currentStep === run.steps.length - 1;
  if (run.kind !== RunKind.INSPECT || run.requestedBy !== goal || run.abort !== undefined) return;
  if (step?.name !== engineSteps.off || step.state !== StepState.PENDING || !isLast) return;
  const { runner, inRunner } = pass.record;
  const isUp = inRunner && runner?.bootOperationId === bootOperationId(pass, run);
  if (!isUp || !hasLooked(run) || !cleanComesNext(pass)) return;
  step.state = StepState.SKIPPED;
  step.skippedBecause = 'the clean that follows works in this boot';
  pass.leftUp = { runner, by: runName(run) };
}

/** Whether the end of the run under way is followed by a clean of the goal at once. Pure. */
function cleanComesNext(pass: Pass): boolean {
  const { status, record, context, spec } = pass;
  if (status.deletion !== undefined || holdOf(pass, HoldScope.WORK) !== undefined) return false;
  if (record.pendingPower !== undefined || record.lookFirstSince !== undefined) return false;
  if (context.restored !== undefined || missing(pass) !== undefined) return false;
  const inventory = inventoryNow(pass);
  // That is a fault as soon as the inspection has ended, and keeps the goal from its clean.
  if (inventory === undefined || unknownBootMacs(spec, inventory).length > 0) return false;
  return wantedRun(pass) === RunKind.CLEAN;
}

/** Has a clean that has just been started work in the runner that was left up for it. */
export function takeOver(pass: Pass, run: Run): void {
  const { leftUp } = pass;
  pass.leftUp = undefined;
  if (leftUp === undefined || run.kind !== RunKind.CLEAN) return;
  pass.record.runner = leftUp.runner;
  for (const step of run.steps.slice(0, intoRunner.length)) {
    step.state = StepState.SKIPPED;
    step.skippedBecause = `the runner is up since ${leftUp.by}`;
  }
  run.currentStep = intoRunner.length - 1;
  const failure = replan(pass, run, leftUp.runner);
  const step = currentStep(run);
  if (failure !== undefined && step !== undefined) failStep(pass, run, step, failure);
}
