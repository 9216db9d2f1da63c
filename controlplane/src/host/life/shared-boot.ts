/**
 * One boot for two runs: the clean after an inspection of the goal uses the runner that is already
 * up (DESIGN §5).
 *
 * Invariants:
 * 1. The two are separate runs. Before the clean begins, the inspection ends, and every reason
 *    against a clean is checked.
 * 2. A host whose clean does not begin in the same pass is switched off, as after any inspection.
 * 3. The clean inspects the host itself, in this boot, and relies on that alone. Nothing is erased
 *    because of the earlier inspection.
 * 4. The clean's steps include the boot. If the shared boot is over, the clean boots another
 *    runner.
 */
import {
  actorKind,
  HoldScope,
  type Run,
  RunKind,
  readActor,
  StepState,
} from '@rackwright/messages';
import { unknownBootMacs } from '../erasure/hardware.ts';
import { hasInspected } from '../erasure/power-cycle.ts';
import { bootOperationId } from '../operation/boots.ts';
import { currentStep, inventoryNow, type Pass, runName } from '../pass/pass.ts';
import { skip, skipReasons } from '../pass/skip-reason.ts';
import { engineSteps, intoRunner } from '../pass/step-names.ts';
import { failStep } from '../run/engine.ts';
import { replan } from '../run/replan.ts';
import { missingNeedOf, wantedRun } from './goal.ts';
import { holdOf } from './refusal.ts';

/** Leaves the host on at the end of an inspection when its clean comes next. */
export function keepOnForClean(pass: Pass, run: Run): void {
  const step = currentStep(run);
  const isLast = run.currentStep === run.steps.length - 1;
  const isOfGoal = actorKind(readActor(run.requestedBy)) === 'goal';
  if (run.kind !== RunKind.INSPECT || !isOfGoal || run.abort !== undefined) return;
  if (step?.name !== engineSteps.off || step.state !== StepState.PENDING || !isLast) return;
  const { runner, inRunner } = pass.record;
  const isUp = inRunner && runner?.bootOperationId === bootOperationId(pass, run);
  if (!isUp || !hasInspected(run) || !cleanComesNext(pass)) return;
  skip(step, skipReasons.leftUp);
  pass.leftUp = { runner, by: runName(run) };
}

/** Whether a clean of the goal follows directly after the run in progress. Pure. */
function cleanComesNext(pass: Pass): boolean {
  const { status, record, snapshot, spec } = pass;
  if (status.deletion !== undefined || holdOf(pass, HoldScope.WORK) !== undefined) return false;
  if (record.pendingPower !== undefined || record.lookFirstSince !== undefined) return false;
  if (snapshot.restored !== undefined || missingNeedOf(pass) !== undefined) return false;
  const inventory = inventoryNow(pass);
  // That becomes a fault when the inspection ends, and prevents the goal's clean.
  if (inventory === undefined || unknownBootMacs(spec, inventory).length > 0) return false;
  return wantedRun(pass) === RunKind.CLEAN;
}

/** Lets a newly started clean use the runner that was left up for it. */
export function takeOver(pass: Pass, run: Run): void {
  const { leftUp } = pass;
  pass.leftUp = undefined;
  if (leftUp === undefined || run.kind !== RunKind.CLEAN) return;
  pass.record.runner = leftUp.runner;
  const reason = skipReasons.sharedBoot(leftUp.by);
  for (const step of run.steps.slice(0, intoRunner.length)) skip(step, reason);
  run.currentStep = intoRunner.length - 1;
  const failure = replan(pass, run, leftUp.runner);
  const step = currentStep(run);
  if (failure !== undefined && step !== undefined) failStep(pass, run, step, failure);
}
