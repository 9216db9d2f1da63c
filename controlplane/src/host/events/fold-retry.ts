/**
 * Folds in the two results after which the same step is tried again: a conflict (`RetryAfter`),
 * and an unknown result (`TransientError`). Each has a bound, after which the step fails.
 *
 * Must not: fold in a result that says how the work ended (`fold.ts`).
 */
import { durationMs, type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  durationText,
  type HostWait,
  type Run,
  type RunFailure,
  RunKind,
  type RunStep,
  TransientCause,
  verifyErasedStep,
} from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { foldSilence } from '../bmc/health.ts';
import { bootOperationId } from '../operation/boots.ts';
import { operationParts } from '../operation/operation.ts';
import { type Pass, type PassView, timeAfter, timeNow, waitFor } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { isBootStep, isOfTemplate, switchesOnImage } from '../pass/step-names.ts';
import { completeStep, failStep, interruptBoot, interruptStep, retryStep } from '../run/engine.ts';
import { giveUpStep, isForcedRemoval } from '../run/forced.ts';
import { calledStep } from '../run/step-parts.ts';
import type { OperationOptions } from '../run/steps/step-definition.ts';
import { stepDefinition } from '../run/steps.ts';

/** What follows a conflict. */
type ConflictCourse =
  /** The work has begun, and how it ends is unknown. */
  | 'interrupt'
  /** The runner of this boot accepts no orders any more. */
  | 'bootAgain'
  /** The host, which was to be switched on, is on. */
  | 'alreadyOn'
  /** A person has frozen the rack or the fleet. */
  | 'frozen'
  /** Something else holds the host for a while. */
  | 'wait';

function courseOf(
  { record }: PassView,
  step: RunStep,
  reason: agent.ConflictReason,
): ConflictCourse {
  const operationRecord = record.operation;
  if (operationRecord?.begun === true) return 'interrupt';
  switch (reason) {
    case agent.ConflictReason.INVALID_STATE: {
      const definition = stepDefinition(step);
      const isInBand = definition.kind === 'operation' && definition.inBand === true;
      if (isInBand || isBootStep(step.name)) return 'bootAgain';
      return switchesOnImage(step.name) ? 'alreadyOn' : 'wait';
    }
    case agent.ConflictReason.FROZEN:
      return 'frozen';
    case agent.ConflictReason.DUPLICATE:
      // It began under this same id before, and its result is lost.
      return operationRecord?.operation?.kind.case === 'runStep' ? 'interrupt' : 'wait';
    default:
      return 'wait';
  }
}

/** A conflict keeps errors and counts. */
export function foldConflict(pass: Pass, run: Run, step: RunStep, result: agent.RetryAfter): void {
  if (isForcedRemoval(pass, run)) return giveUpStep(pass, run, step, result.message);
  switch (courseOf(pass, step, result.reason)) {
    case 'interrupt':
      return interruptStep(pass, run, step, result.message);
    case 'bootAgain':
      return interruptBoot(pass, run, step, result.message);
    case 'alreadyOn':
      return foldOnAlready(pass, run, step);
    case 'frozen':
      return foldFrozen(pass, run, step, result);
    case 'wait':
      return waitInConflict(pass, run, step, result);
  }
}

/** The step waits for the end of the conflict, within a bound. */
function waitInConflict(pass: Pass, run: Run, step: RunStep, result: agent.RetryAfter): void {
  const { nowMs, timing } = pass.snapshot;
  const first = pass.record.operation?.firstConflictTime ?? timeNow(pass);
  const leftMs = timestampMs(first) + timing.conflictBudgetMs - nowMs;
  if (leftMs <= 0) {
    const lasted = durationText(timing.conflictBudgetMs);
    const text = `${calledStep(step)}: still in conflict after ${lasted}: ${result.message}`;
    failStep(pass, run, step, stepFailure('conflict', text));
    return;
  }
  const askedMs = result.delay === undefined ? 0 : durationMs(result.delay);
  // The last try is at the end of the budget, even when the agent asks for a longer delay.
  const notBefore = timeAfter(pass, Math.min(Math.max(timing.retryDelayMs, askedMs), leftMs));
  retryStep(pass, run, step, checkAgain(pass), { notBefore, firstConflictTime: first });
  waitFor(pass, run, 'conflict', result.message);
}

/**
 * A host that is on cannot be made to boot from its disk. After an attempt of ours, in this run or
 * since its last power off, it did boot from there. Otherwise somebody else switched it on, and
 * what it booted is unknown.
 */
function foldOnAlready(pass: Pass, run: Run, step: RunStep): void {
  const { record, status } = pass;
  status.poweredOn = true;
  const isOurs = record.switchedOnRun !== 0n && record.switchedOnRun !== run.number;
  if (step.attempt > 1 || isOurs) return completeStep(pass, run, step);
  record.switchedOnRun = 0n;
  const text = 'the host is on already; ask for a reset to boot it from its disk';
  failStep(pass, run, step, stepFailure('conflict', `${calledStep(step)}: ${text}`));
}

/** A freeze lasts until a person ends it: budgets do not run during it. */
function foldFrozen(pass: Pass, run: Run, step: RunStep, result: agent.RetryAfter): void {
  const notBefore = timeAfter(pass, pass.snapshot.timing.retryDelayMs);
  retryStep(pass, run, step, checkAgain(pass), { notBefore, ...conflictSince(pass) });
  waitFor(pass, run, 'freeze', result.message);
}

/** The result is unknown: retry later, and report it when it lasts. */
export function foldTransient(
  pass: Pass,
  run: Run,
  step: RunStep,
  result: agent.TransientError,
): void {
  if (isForcedRemoval(pass, run)) return giveUpStep(pass, run, step, result.message);
  if (result.cause === TransientCause.RUNNER_AWAY && isOfEarlierRun(pass, run)) {
    return interruptBoot(pass, run, step, result.message);
  }
  // R4: it has begun, whatever prevented its end.
  if (pass.record.operation?.begun === true) {
    return interruptStep(pass, run, step, result.message);
  }
  const silence = silenceOf(pass);
  const failure = transientFailureOf(pass, run, step, result, silence);
  if (failure !== undefined) {
    // A later attempt cannot use this boot, unless the runner is seen again.
    if (result.cause === TransientCause.RUNNER_AWAY) pass.record.inRunner = false;
    return failStep(pass, run, step, failure);
  }
  const { timing } = pass.snapshot;
  if (silence.count >= timing.transientFaultCount || silence.lastedMs >= timing.transientFaultMs) {
    foldSilence(pass, result.cause, result.message, silence.since);
  }
  const postponement = {
    notBefore: timeAfter(pass, transientDelayMs(pass, run, result, silence)),
    transientCount: silence.count,
    firstTransientTime: silence.since,
    ...conflictSince(pass),
  };
  retryStep(pass, run, step, checkAgain(pass), postponement);
  waitFor(pass, run, silent[result.cause] ?? 'bmc', result.message, silence.since);
}

/** Unknown results of a step in a row, with the present one. */
interface Silence {
  readonly count: number;
  readonly since: Timestamp;
  readonly lastedMs: number;
}

function silenceOf(pass: PassView): Silence {
  const { operation: operationRecord } = pass.record;
  const since = operationRecord?.firstTransientTime ?? timeNow(pass);
  const lastedMs = pass.snapshot.nowMs - timestampMs(since);
  return { count: (operationRecord?.transientCount ?? 0) + 1, since, lastedMs };
}

/** How the step fails because results were unknown for too long; undefined: it is retried. */
function transientFailureOf(
  { snapshot: { timing } }: PassView,
  { kind }: RunView,
  step: StepView,
  { cause, message }: agent.TransientError,
  { lastedMs }: Silence,
): RunFailure | undefined {
  switch (cause) {
    case TransientCause.RUNNER_AWAY: {
      if (lastedMs <= timing.bootTimeoutMs) return undefined;
      const text = `the runner went away and did not come back: ${message}`;
      return stepFailure('runnerLost', `${calledStep(step)}: ${text}`);
    }
    case TransientCause.REGISTRY: {
      const isOfWorkflow = kind === RunKind.WORKFLOW && isOfTemplate(step);
      if (isOfWorkflow || lastedMs <= timing.registryBudgetMs) return undefined;
      return stepFailure('registryUnreachable', message);
    }
    default:
      return undefined;
  }
}

/** How long the next attempt is postponed. */
function transientDelayMs(
  { host, snapshot: { timing } }: PassView,
  { number, currentStep: at }: RunView,
  { delay }: agent.TransientError,
  { count, lastedMs }: Silence,
): number {
  const key = `${host.uid}/${number}/${at}`;
  const { retryDelayMs: firstMs, retryDelayMaxMs: delayMsMax } = timing;
  const backoffMs = backoffDelayMs({ attempt: count, firstMs, delayMsMax, key });
  const askedMs = delay === undefined ? 0 : durationMs(delay);
  // The last try is at the end of the budget, even when the agent asks for a longer delay.
  return Math.max(backoffMs, Math.min(askedMs, timing.registryBudgetMs - lastedMs));
}

/** Which party did not respond; the BMC for any other cause. */
const silent: Readonly<Partial<Record<TransientCause, HostWait>>> = {
  [TransientCause.RUNNER_AWAY]: 'runner',
  [TransientCause.REGISTRY]: 'registry',
};

/**
 * A resumed run uses the runner of the failed one only while that runner is up. A clean in the boot
 * of its inspection waits for its runner as in a boot of its own.
 */
function isOfEarlierRun(pass: PassView, run: RunView): boolean {
  if (run.resumes === '') return false;
  const boot = operationParts(pass.host.uid, bootOperationId(pass, run));
  return boot !== undefined && boot.runNumber !== run.number;
}

/** All conflicts of a step share one budget, regardless of other results in between. */
function conflictSince({ record }: PassView): { readonly firstConflictTime?: Timestamp } {
  const firstConflictTime = record.operation?.firstConflictTime;
  return firstConflictTime === undefined ? {} : { firstConflictTime };
}

/** Whether the present order only looks for what an earlier one has done. */
export function isCheck({ record }: PassView): boolean {
  const kind = record.operation?.operation?.kind;
  return (
    kind?.case === 'runStep' &&
    kind.value.mode === agent.StepMode.CHECK &&
    kind.value.step !== verifyErasedStep
  );
}

/** A check without a result stays a check. */
export function checkAgain(pass: PassView): OperationOptions {
  const operation = pass.record.operation?.operation;
  return operation !== undefined && isCheck(pass) ? { checkOf: operation } : {};
}
