/**
 * Folds in an agent's reports. Every report gets a verdict (R7). Only a result of the operation in
 * progress changes the run, and each of the six result kinds does exactly what DESIGN §3 permits.
 */
import {
  actors,
  type agent,
  type FailureDetails,
  FailureType,
  failureNameOf,
  type OperationId,
  otherHost,
  RerunClass,
  type Run,
  type RunFailure,
  type RunStep,
  shownCertificate,
  verifyErasedStep,
} from '@rackwright/messages';
import { resultFromWire } from '@rackwright/results';
import { noteDrives } from '../bmc/drives.ts';
import { bmcWorked, clearInBand, foldBmcFailure } from '../bmc/health.ts';
import { noteWriteReported } from '../deployment/deployment.ts';
import { foldQueueProgress, queueTimedOut } from '../deployment/image-queue.ts';
import { foldSigns, hostNotProved } from '../deployment/not-proved.ts';
import { noteWritten } from '../deployment/written-disk.ts';
import { noteDriveChanges } from '../erasure/hardware.ts';
import { ownerOf } from '../erasure/identity.ts';
import { nameOfNotProved, noteNotProved } from '../erasure/power-cycle.ts';
import { noteSpeedsOfFailed } from '../erasure/speeds.ts';
import { noteParts } from '../hardware/parts.ts';
import { noteBurnIn } from '../operation/burn-ins.ts';
import { closeOpen } from '../operation/open-operations.ts';
import { operationParts } from '../operation/operation.ts';
import {
  late,
  noteSettled,
  settledBefore,
  tooLateToAct,
  unsupported,
  verdictBefore,
} from '../operation/settled.ts';
import { isWaitEnded } from '../operation/shutdown.ts';
import { noteBegun } from '../pass/brake.ts';
import {
  activeRun,
  currentStep,
  hasPassed,
  type Pass,
  type PassView,
  recordCause,
  timeNow,
  waitsForOthers,
} from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { stepFailure, truncate } from '../pass/step-failure.ts';
import { holdBySystem } from '../pass/system-holds.ts';
import type { ReportVerdict } from '../pass/types.ts';
import { completeStep, failStep, interruptStep, retryStep } from '../run/engine.ts';
import { addProofAtEnd } from '../run/proof-steps.ts';
import { takeOutput } from '../run/step-output.ts';
import { calledStep } from '../run/step-parts.ts';
import { isOrderedOnce } from '../run/steps/of-agent.ts';
import { stepDefinition } from '../run/steps.ts';
import { foldConflict, foldTransient, isCheck } from './fold-retry.ts';
import { foldFacts } from './observe.ts';

/** The longest stored progress of an interrupted step, in characters. */
const progressMax = 16_384;

/** The present attempt: the run, its step and the operation in progress. */
interface Attempt {
  readonly run: Run;
  readonly step: RunStep;
}

export function foldReport(pass: Pass, report: agent.Report): void {
  const attempt = attemptOf(pass, report.operationId);
  const verdict = foldResult(pass, report);
  if (verdict === undefined) return;
  const isHandOff = attempt?.step.handOff === true && report.result.case === 'complete';
  if (attempt !== undefined) noteSettled(pass, report, verdict, { isHandOff });
  pass.effects.push({ kind: 'answer', verdict });
}

function foldResult(pass: Pass, report: agent.Report): ReportVerdict | undefined {
  const { result } = report;
  if (report.operationId === '') {
    if (result.case === 'hostUpdated') foldFacts(pass, result.value.observations, report.time);
    return undefined;
  }
  const operationRecord = pass.record.operation;
  if (operationRecord !== undefined && operationRecord.cancelId === report.operationId)
    return { kind: 'applied' };
  const attempt = attemptOf(pass, report.operationId);
  if (attempt === undefined) return verdictOfStranger(pass, report);
  const read = resultFromWire(report);
  if (read.kind === 'unsupported') {
    // A malformed report of a kind that never ends an attempt does not end one: the work goes on
    // (R8).
    return report.sequence === 0n
      ? undefined
      : foldUnsupported(pass, attempt, report, read.problem);
  }
  noteWriteReported(pass, attempt.step, report);
  noteWritten(pass, attempt.step, report);
  noteBurnIn(pass, attempt.step, report);
  if (endsAttempt(report)) recordCause(pass, actors.agent, resultText(report, attempt.step));
  switch (result.case) {
    case 'complete':
      return foldComplete(pass, attempt, result.value);
    case 'continuing':
      pass.effects.push({ kind: 'progress', continuing: result.value });
      if (result.value.begun) foldBegun(pass, attempt);
      foldQueueProgress(pass, attempt.run, attempt.step, result.value);
      foldSigns(pass, attempt.step, result.value.signs, { isEnd: false });
      return undefined;
    case 'retryAfter':
      foldConflict(pass, attempt.run, attempt.step, result.value);
      return { kind: 'applied' };
    case 'hostUpdated':
      foldFacts(pass, result.value.observations, report.time);
      return undefined;
    case 'failed':
      foldFailed(pass, attempt, result.value);
      return { kind: 'applied' };
    case 'transientError':
      foldTransient(pass, attempt.run, attempt.step, result.value);
      return { kind: 'applied' };
    case undefined:
      return foldUnsupported(pass, attempt, report, 'no result');
  }
}

function foldBegun(pass: Pass, { run, step }: Attempt): void {
  noteBegun(pass, run);
  const operationRecord = pass.record.operation;
  if (operationRecord !== undefined && step.rerunClass === RerunClass.NEVER_TWICE)
    operationRecord.begun = true;
}

function attemptOf(pass: Pass, operationId: OperationId): Attempt | undefined {
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined) return undefined;
  return pass.record.operation?.operation?.id === operationId ? { run, step } : undefined;
}

function endsAttempt({ result }: agent.Report): boolean {
  return result.case !== 'continuing' && result.case !== 'hostUpdated';
}

/** R7: a result of another attempt changes nothing, whatever it says. */
function verdictOfStranger(pass: Pass, report: agent.Report): ReportVerdict {
  const { operationId } = report;
  const before = verdictBefore(pass.record, report);
  if (before !== undefined) return before;
  if (endsAttempt(report) && closeOpen(pass, operationId)) {
    noteSettled(pass, report, late, { isHandOff: false });
    recordCause(
      pass,
      actors.agent,
      `late ${report.result.case} of ${operationId}, which changes nothing`,
    );
    return late;
  }
  // A Cancel is answered when the cancelled work is over: mostly after that was settled.
  const parts = operationParts(pass.host.uid, operationId.replace(/\/cancel$/, ''));
  if (parts === undefined) {
    const reason = `${operationId} is no operation id of this host`;
    return { kind: 'refused', cause: 'notOfHost', reason };
  }
  if (parts.runNumber > pass.record.runCount) {
    const reason = `run ${parts.runNumber} was never started here`;
    return { kind: 'refused', cause: 'neverStarted', reason };
  }
  return settledBefore;
}

function resultText(report: agent.Report, step: StepView): string {
  const kind = report.result.case ?? 'unsupported';
  return `${calledStep(step)} attempt ${step.attempt}: ${kind}`;
}

/** R8: an unknown result is never success; the attempt is over, and a person must check. */
function foldUnsupported(
  pass: Pass,
  { run, step }: Attempt,
  report: agent.Report,
  problem: string,
): ReportVerdict {
  recordCause(pass, actors.agent, resultText(report, step));
  const reason = `the agent sent a result that this control plane does not understand: ${problem}`;
  pass.status.holds.push(holdBySystem(reason, timeNow(pass)));
  failStep(pass, run, step, stepFailure('unsupported', `${calledStep(step)}: ${reason}`));
  return unsupported;
}

function foldComplete(pass: Pass, { run, step }: Attempt, result: agent.Complete): ReportVerdict {
  if (asksBmc(pass)) bmcWorked(pass);
  else clearInBand(pass);
  const definition = stepDefinition(step);
  if (definition.kind !== 'operation') return { kind: 'applied' };
  keepOutput(pass, { run, step }, result.output);
  if (pass.record.operation?.operation?.kind.case === 'verifyAccess') {
    noteDriveChanges(pass, result.observations?.bmcDrives);
  }
  noteDrives(pass, result.observations);
  noteParts(pass, result.observations);
  const failure = whyNotToAct(pass, run, step) ?? definition.complete(pass, run, step, result);
  if (failure === undefined) {
    // The system that replaces our runner may have data to lose.
    if (step.handOff) pass.record.inRunner = false;
    addProofAtEnd(pass, run);
    completeStep(pass, run, step);
  } else if (isCheck(pass)) retryStep(pass, run, step, {}, {});
  else if (failure.type === FailureType.INTERRUPTED)
    interruptStep(pass, run, step, failure.message);
  else failStep(pass, run, step, failure);
  return failure !== undefined && step.handOff ? tooLateToAct : { kind: 'applied' };
}

/**
 * A hand-off has had no effect yet when its end is reported: one that is too late never begins
 * (R5).
 */
function whyNotToAct(pass: PassView, run: RunView, step: StepView): RunFailure | undefined {
  if (!step.handOff) return undefined;
  if (run.abort !== undefined) {
    return stepFailure('cancelled', `${calledStep(step)}: the run was aborted before it acted`);
  }
  const runIsOver = !waitsForOthers(run) && hasPassed(pass, run.deadline);
  if (!runIsOver && !hasPassed(pass, step.deadline)) return undefined;
  return stepFailure('deadline', `${calledStep(step)}: its time was over before it acted`);
}

function keepOutput(
  pass: Pass,
  { run, step }: Attempt,
  output: agent.StepOutput | undefined,
): void {
  takeOutput(pass, run, step, pass.record.operation?.operation?.id ?? '', output);
}

function foldFailed(pass: Pass, { run, step }: Attempt, result: agent.Failed): void {
  keepOutput(pass, { run, step }, result.output);
  if (result.type === FailureType.INTERRUPTED) {
    interruptStep(pass, run, step, result.message, truncate(result.lastProgress, progressMax));
    return;
  }
  const mayRun = isCheck(pass) && run.abort === undefined;
  // An order that the BMC may still be carrying out is not repeated because its effect is not
  // visible yet.
  if ((mayRun && !isOrderedOnce(step)) || isWaitEnded(pass, run, step, result)) {
    retryStep(pass, run, step, {}, {});
    return;
  }
  if (asksBmc(pass)) foldBmcFailure(pass, result.type, result.message);
  else clearInBand(pass);
  foldSigns(pass, step, result.observations?.signs ?? [], { isEnd: true });
  noteSpeedsOfFailed(pass, step, result);
  if (step.name === verifyErasedStep) noteNotProved(pass, result);
  const own = failureOfType(pass, run, step, result) ?? reportedFailure(pass, step, result);
  failStep(pass, run, step, own);
}

function reportedFailure(pass: PassView, step: StepView, result: agent.Failed): RunFailure {
  const text = result.message || `${calledStep(step)} failed; the agent did not say why`;
  const name = failureNameOf(result.type) ?? 'invalidResult';
  const owner = otherOwner(pass, result);
  const message = owner === undefined ? text : `${text}; it is ${owner}`;
  const details = owner === undefined ? shownDetails(result) : otherHost(owner);
  return stepFailure(name, message, result.detail, details);
}

/** The part of an agent's details that it may set, if well-formed. */
function shownDetails({ details }: agent.Failed): FailureDetails | undefined {
  if (details?.kind.case !== 'shownCertificate') return undefined;
  const { sha256 } = details.kind.value;
  return /^[0-9a-f]{64}$/.test(sha256) ? shownCertificate(sha256) : undefined;
}

/** One text, whether the agent reports it first or our own deadline fires first. */
function failureOfType(
  pass: PassView,
  run: RunView,
  step: StepView,
  { type, message }: agent.Failed,
): RunFailure | undefined {
  if (step.name === verifyErasedStep) return nameOfNotProved({ type, message });
  switch (type) {
    case FailureType.NOT_PROVED:
      return hostNotProved(pass, run, message);
    case FailureType.QUEUE_TIMEOUT:
      return queueTimedOut(pass, message);
    default:
      return undefined;
  }
}

/** Whether the BMC answers the present operation, and not a runner. */
function asksBmc({ record }: PassView): boolean {
  const kind = record.operation?.operation?.kind;
  switch (kind?.case) {
    case 'verifyAccess':
    case 'setPower':
      return true;
    case 'runStep':
      return kind.value.bmc !== undefined;
    default:
      return false;
  }
}

/** A foreign identity often belongs to another host: names that host. */
function otherOwner(pass: PassView, { type, observations }: agent.Failed): string | undefined {
  if (type !== FailureType.IDENTITY_MISMATCH) return undefined;
  return ownerOf(pass, observations?.bmcIdentity) ?? observations?.unexpectedNetboot?.hostName;
}
