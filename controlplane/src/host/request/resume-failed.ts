/** From a clean that ended badly on: going on with it, or switching off the host that it left. */
import {
  HoldScope,
  HostState,
  type Run,
  RunKind,
  RunPhase,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { contentReturned } from '../erasure/power-cycle.ts';
import { claimOfUse } from '../life/claim.ts';
import { hasWhatRunsNeed } from '../life/goal.ts';
import { holdOf } from '../life/refusal.ts';
import { bootAfterLoss } from '../operation/boots.ts';
import { activeRun, causedBy, hasPassed, type Pass, runName, system } from '../pass/pass.ts';
import { engineSteps, isBootStep } from '../pass/step-names.ts';
import type { Refusal, Requester } from '../pass/types.ts';
import { settle } from '../run/after-failure.ts';
import { startRun } from '../run/engine.ts';

/** Switches the host off whose stay in the runner is over. Whether a run was started. */
export function endStay(pass: Pass): boolean {
  settle(pass);
  const { status } = pass;
  const until = status.afterFailure?.runnerUntil;
  if (status.state !== HostState.MANAGEABLE || !hasPassed(pass, until)) return false;
  // Who uses the host, or works on it in rescue, decides when it goes off.
  if (status.inRescue || claimOfUse(status) !== undefined) return false;
  if (holdOf(pass, HoldScope.POWER) !== undefined || !hasWhatRunsNeed(pass)) return false;
  startRun(pass, RunKind.POWER, system, [{ step: engineSteps.off, arguments: {} }]);
  causedBy(pass, system, `its stay in the runner after ${status.afterFailure?.run} is over`);
  return true;
}

/**
 * Goes on with the failed clean, as a new run, from the step that failed: in the runner that is
 * still there, or after another boot, and then nothing of before counts as erased.
 */
export function resumeFailed(pass: Pass, reason: string, by: Requester): Refusal | undefined {
  const { record, status, host } = pass;
  const failed = record.failedRun;
  if (failed === undefined || status.afterFailure === undefined) {
    const message = `${host.name}: no failed clean can be resumed; ask for a clean`;
    return { code: 'failedPrecondition', reason: 'nothingToDo', message };
  }
  const runner = isInRunner(pass) ? record.runner : undefined;
  const { devicePlan, certified, plannedErasure } = record;
  startRun(pass, RunKind.CLEAN, by.actor, []);
  const run = activeRun(status) as Run;
  run.manual = failed.manual;
  run.steps = failed.steps.map((step, index) => {
    return index < failed.currentStep ? asDone(step) : asPending(step);
  });
  run.currentStep = failed.currentStep;
  run.runnerVersion = failed.runnerVersion;
  run.resumes = runName(failed);
  record.devicePlan = devicePlan;
  record.certified = certified;
  // What was started by a plan erases what that names, however often it is gone on with.
  run.planHash = failed.planHash;
  if (plannedErasure !== undefined) record.plannedErasure = plannedErasure;
  const step = run.steps[run.currentStep];
  const isBooting = step?.name === engineSteps.awaitRunner || isBootStep(step?.name ?? '');
  // Where content came back, no erasure of the failed run counts: its reading would have none to
  // look at, and the host would be available as it is.
  const isErasedAgain = status.faults.some(({ type }) => type === contentReturned);
  const bootsAgain = runner === undefined || isBooting || isErasedAgain;
  if (bootsAgain) bootAfterLoss(pass, run, { isErasedAgain });
  else record.runner = runner;
  const why = reason === '' ? '' : `: ${reason}`;
  causedBy(pass, by.actor, `${runName(failed)} resumed as ${runName(run)}${why}`);
  return undefined;
}

/** The runner of the failed run is there, as far as is known. */
function isInRunner({ record, status }: Pass): boolean {
  const { run, afterFailure, poweredOn } = status;
  const until = afterFailure?.runnerUntil;
  if (record.runner === undefined || until === undefined || poweredOn === false) return false;
  return run?.phase === RunPhase.ENDED && run.number === record.failedRun?.number;
}

/** No attempt of this run: an id of the failed one is never used again. */
function asDone(step: RunStep): RunStep {
  const { deadline: _, ...kept } = step;
  return { ...kept, attempt: 0, interruptions: 0, failures: 0 };
}

function asPending(step: RunStep): RunStep {
  const { startTime: _, endTime: __, ...kept } = asDone(step);
  return { ...kept, error: '', state: StepState.PENDING };
}
