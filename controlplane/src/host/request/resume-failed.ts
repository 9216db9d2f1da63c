/** After a failed clean: resumes it, or switches its host off. */
import {
  actors,
  HoldScope,
  HostState,
  hasFault,
  type Run,
  RunKind,
  RunPhase,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { contentReturned } from '../erasure/power-cycle.ts';
import { claimOfUse } from '../life/claim.ts';
import { noteMissingNeeds } from '../life/goal.ts';
import { holdOf } from '../life/refusal.ts';
import { rewindAfterBootLoss } from '../operation/boots.ts';
import {
  activeRun,
  hasPassed,
  type Pass,
  type PassView,
  recordCause,
  runName,
} from '../pass/pass.ts';
import { engineSteps, isBootStep } from '../pass/step-names.ts';
import type { Refusal, Requester } from '../pass/types.ts';
import { settle } from '../run/after-failure.ts';
import { startRun } from '../run/engine.ts';

/** Switches off the host when its stay in the runner is over. True: a run was started. */
export function endRunnerStay(pass: Pass): boolean {
  settle(pass);
  const { status } = pass;
  const until = status.afterFailure?.runnerUntil;
  if (status.state !== HostState.MANAGEABLE || !hasPassed(pass, until)) return false;
  // The user of the host, or the person in rescue, decides when it is switched off.
  if (status.inRescue || claimOfUse(status) !== undefined) return false;
  if (holdOf(pass, HoldScope.POWER) !== undefined) return false;
  if (noteMissingNeeds(pass) === 'missing') return false;
  startRun(pass, RunKind.POWER, actors.system, [{ step: engineSteps.off, arguments: {} }]);
  recordCause(
    pass,
    actors.system,
    `its stay in the runner after ${status.afterFailure?.run} is over`,
  );
  return true;
}

/**
 * Resumes the failed clean, as a new run, from the failed step: in the runner that is still up, or
 * after another boot. After another boot no earlier erasure counts.
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
  // A clean that was started from a plan erases only the devices of that plan, also after several
  // resumes.
  run.planHash = failed.planHash;
  if (plannedErasure !== undefined) record.plannedErasure = plannedErasure;
  const step = run.steps[run.currentStep];
  const isBooting = step?.name === engineSteps.awaitRunner || isBootStep(step?.name ?? '');
  // Where erased data has returned, no erasure of the failed run counts: otherwise the reading
  // would have nothing to read, and the host would become available as it is.
  const isErasedAgain = hasFault(status.faults, contentReturned);
  const bootsAgain = runner === undefined || isBooting || isErasedAgain;
  if (bootsAgain) rewindAfterBootLoss(pass, run, { isErasedAgain });
  else record.runner = runner;
  const why = reason === '' ? '' : `: ${reason}`;
  recordCause(pass, by.actor, `${runName(failed)} resumed as ${runName(run)}${why}`);
  return undefined;
}

/** The runner of the failed run is up, as far as is known. */
function isInRunner({ record, status }: PassView): boolean {
  const { run, afterFailure, poweredOn } = status;
  const until = afterFailure?.runnerUntil;
  if (record.runner === undefined || until === undefined || poweredOn === false) return false;
  return run?.phase === RunPhase.ENDED && run.number === record.failedRun?.number;
}

/** Without attempts in this run: ids of the failed run are never used again. */
function asDone(step: RunStep): RunStep {
  const { deadline: _, ...kept } = step;
  return { ...kept, attempt: 0, interruptions: 0, failures: 0 };
}

function asPending(step: RunStep): RunStep {
  const { startTime: _, endTime: __, ...kept } = asDone(step);
  return { ...kept, error: '', state: StepState.PENDING };
}
