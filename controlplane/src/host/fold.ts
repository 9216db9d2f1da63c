/**
 * Folds in what the agent says. Every report gets a verdict (R7); only a result of the operation
 * in the slot moves the run, and the six kinds do what DESIGN §3 lets them do, no more.
 */
import { create } from '@bufbuild/protobuf';
import { durationMs, type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, HoldSchema, HoldScope, HostState, type Run, type RunStep } from '@rackwright/api';
import { backoffMs } from './derive.ts';
import { completeStep, failStep, interruptStep, leaveAvailable, retryStep } from './engine.ts';
import { clearFault, setFault } from './fault.ts';
import { ownerOf } from './identity.ts';
import { operationParts, resend } from './operation.ts';
import { stepFailure } from './step-failure.ts';
import { factsWith, stepDefinition } from './steps.ts';
import { activeRun, causedBy, currentStep, later, now, type Turn, waitFor } from './turn.ts';
import type { AnswerVerdict } from './types.ts';

const bmcFault = 'bmcUnreachable';

/** What the present attempt is: the run, its step and the operation in the slot. */
interface Attempt {
  readonly run: Run;
  readonly step: RunStep;
}

export function foldReport(turn: Turn, report: agent.Report): void {
  const verdict = foldResult(turn, report);
  if (verdict !== undefined) turn.effects.push({ kind: 'answer', verdict });
}

function foldResult(turn: Turn, report: agent.Report): AnswerVerdict | undefined {
  const { result } = report;
  if (report.operationId === '') {
    if (result.case === 'hostUpdated') foldFacts(turn, result.value.observations);
    return undefined;
  }
  const slot = turn.record.operation;
  if (slot !== undefined && slot.cancelId === report.operationId) return { kind: 'applied' };
  const attempt = attemptOf(turn, report.operationId);
  if (attempt === undefined) return verdictOfStranger(turn, report.operationId);
  if (result.case !== 'continuing') causedBy(turn, 'agent', resultText(report, attempt.step));
  switch (result.case) {
    case 'complete':
      foldComplete(turn, attempt, result.value);
      return { kind: 'applied' };
    case 'continuing':
      turn.effects.push({ kind: 'progress', continuing: result.value });
      return undefined;
    case 'retryAfter':
      foldConflict(turn, attempt, result.value);
      return { kind: 'applied' };
    case 'hostUpdated':
      foldFacts(turn, result.value.observations);
      return undefined;
    case 'failed':
      foldFailed(turn, attempt, result.value);
      return { kind: 'applied' };
    case 'transientError':
      foldTransient(turn, attempt, result.value);
      return { kind: 'applied' };
    case undefined:
      return foldUnsupported(turn);
  }
}

function attemptOf(turn: Turn, operationId: string): Attempt | undefined {
  const run = activeRun(turn.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined) return undefined;
  return turn.record.operation?.operation?.id === operationId ? { run, step } : undefined;
}

/** R7: a result of another attempt changes nothing, whatever it says. */
function verdictOfStranger(turn: Turn, operationId: string): AnswerVerdict {
  const parts = operationParts(turn.host.uid, operationId);
  if (parts === undefined)
    return { kind: 'refused', reason: `${operationId} is no operation id of this host` };
  if (parts.runNumber > turn.record.runCount) {
    return { kind: 'refused', reason: `run ${parts.runNumber} was never started here` };
  }
  return { kind: 'stale', reason: 'the operation has been settled already' };
}

function resultText(report: agent.Report, step: RunStep): string {
  const kind = report.result.case ?? 'unsupported';
  return `${step.name} attempt ${step.attempt}: ${kind}`;
}

/** R8: what we do not understand is never success; a person must look. */
function foldUnsupported(turn: Turn): AnswerVerdict {
  const reason = 'the agent sent a result of a kind that this control plane does not know';
  turn.status.holds.push(
    create(HoldSchema, { scope: HoldScope.WORK, by: 'system', reason, since: now(turn) }),
  );
  return { kind: 'refused', reason: 'unsupported' };
}

function foldComplete(turn: Turn, { run, step }: Attempt, result: agent.Complete): void {
  clearFault(turn, bmcFault);
  const definition = stepDefinition(step.name);
  if (definition.kind !== 'operation') return;
  const failure = definition.complete(turn, run, step, result);
  if (failure === undefined) completeStep(turn, run, step);
  else if (failure.type === 'interrupted') interruptStep(turn, run, step, failure.message);
  else failStep(turn, run, step, failure);
}

/** A conflict keeps errors and counts; it only waits, and not for ever. */
function foldConflict(turn: Turn, { run, step }: Attempt, result: agent.RetryAfter): void {
  const slot = turn.record.operation;
  const isOn = result.reason === agent.ConflictReason.INVALID_STATE;
  if (step.name === 'power.bootRunner' && isOn) {
    interruptStep(turn, run, step, result.message);
    return;
  }
  const first = slot?.firstConflictTime ?? now(turn);
  if (turn.context.nowMs - timestampMs(first) > turn.context.timing.conflictBudgetMs) {
    const text = `${step.name}: still in conflict after 15 minutes: ${result.message}`;
    failStep(turn, run, step, stepFailure('conflict', text));
    return;
  }
  const delayMs = result.delay === undefined ? 0 : durationMs(result.delay);
  const notBefore = later(turn, Math.max(turn.context.timing.retryDelayMs, delayMs));
  retryStep(turn, run, step, checkAgain(turn), { notBefore, firstConflictTime: first });
  waitFor(turn, run, 'conflict', result.message);
}

/** Could not tell: try again later, and say so once it lasts. */
function foldTransient(turn: Turn, { run, step }: Attempt, result: agent.TransientError): void {
  const slot = turn.record.operation;
  const { timing, nowMs } = turn.context;
  const count = (slot?.transientCount ?? 0) + 1;
  const first = slot?.firstTransientTime ?? now(turn);
  const lastedMs = nowMs - timestampMs(first);
  if (result.cause === 'runnerAway' && lastedMs > timing.bootTimeoutMs) {
    const text = `${step.name}: the runner went away and did not come back: ${result.message}`;
    failStep(turn, run, step, stepFailure('runnerLost', text));
    return;
  }
  if (count >= timing.transientFaultCount || lastedMs >= timing.transientFaultMs) {
    setFault(turn, bmcFault, result.message, 'the next result that could tell');
  }
  const key = `${turn.host.uid}/${run.number}/${run.currentStep}`;
  const delayMs = backoffMs(count, timing.retryDelayMs, timing.retryDelayMaxMs, key);
  const postponement = {
    notBefore: later(turn, delayMs),
    transientCount: count,
    firstTransientTime: first,
    ...conflictSince(turn),
  };
  retryStep(turn, run, step, checkAgain(turn), postponement);
  waitFor(turn, run, result.cause === 'runnerAway' ? 'runner' : 'bmc', result.message);
}

/** A step's conflicts share one budget, whatever comes between them. */
function conflictSince({ record }: Turn): { readonly firstConflictTime?: Timestamp } {
  const firstConflictTime = record.operation?.firstConflictTime;
  return firstConflictTime === undefined ? {} : { firstConflictTime };
}

/** A check that could not be made stays a check. */
function checkAgain(turn: Turn): { readonly checkOf?: agent.Operation } {
  const operation = turn.record.operation?.operation;
  const kind = operation?.kind;
  const isCheck = kind?.case === 'runStep' && kind.value.mode === agent.StepMode.CHECK;
  return operation !== undefined && isCheck ? { checkOf: operation } : {};
}

function foldFailed(turn: Turn, { run, step }: Attempt, result: agent.Failed): void {
  if (result.type === 'interrupted') {
    interruptStep(turn, run, step, result.message, result.lastProgress);
    return;
  }
  if ('checkOf' in checkAgain(turn) && run.abort === undefined) {
    retryStep(turn, run, step, {}, {});
    return;
  }
  const words = result.message || `${step.name} failed; the agent did not say why`;
  const message = `${words}${namedOther(turn, result)}`;
  failStep(turn, run, step, stepFailure(result.type || 'failed', message, result.detail));
}

/** An identity that is not the host's own often is another host's: then say whose. */
function namedOther(turn: Turn, result: agent.Failed): string {
  if (result.type !== 'identityMismatch') return '';
  const owner =
    ownerOf(turn, result.observations?.bmcIdentity) ??
    result.observations?.unexpectedNetboot?.hostName;
  return owner === undefined || result.message.includes(owner) ? '' : `; it is ${owner}`;
}

/** Observed facts: never desired state, progress or errors. */
function foldFacts(turn: Turn, observations: agent.Observations | undefined): void {
  if (observations === undefined) return;
  const { status } = turn;
  if (observations.poweredOn !== undefined) status.poweredOn = observations.poweredOn;
  if (observations.runnerReady !== undefined) foldRunnerReady(turn, observations.runnerReady);
  if (observations.inventory !== undefined) {
    const facts = factsWith(turn, { inventory: observations.inventory });
    turn.effects.push({ kind: 'facts', facts });
  }
  if (observations.unexpectedNetboot !== undefined) {
    foldNetboot(turn, observations.unexpectedNetboot);
  }
}

function foldRunnerReady(turn: Turn, ready: agent.RunnerReady): void {
  const run = activeRun(turn.status);
  const parts = operationParts(turn.host.uid, ready.bootOperationId);
  if (run === undefined || parts === undefined || parts.runNumber !== run.number) return;
  turn.record.runner = ready;
  if (ready.steps.length === 0) return;
  const facts = factsWith(turn, {
    runnerSteps: ready.steps,
    runnerVersion: ready.runnerVersion,
    runnerStepsAt: now(turn),
  });
  const same =
    turn.context.facts.runnerVersion === ready.runnerVersion &&
    turn.context.facts.runnerSteps.length === ready.steps.length;
  if (!same) turn.effects.push({ kind: 'facts', facts });
}

/**
 * A netboot that nobody ordered. Of this host: data may have come onto its disks. Of another host
 * instead of this one: the BMCs are crossed, and the run ends before anything is written.
 */
function foldNetboot(turn: Turn, netboot: agent.UnexpectedNetboot): void {
  const { status, host } = turn;
  if (netboot.hostUid === host.uid) {
    if (activeRun(status) !== undefined) return;
    if (status.state === HostState.AVAILABLE) {
      leaveAvailable(turn);
      causedBy(turn, 'agent', `netbooted from ${netboot.mac} without an order`);
    }
    return;
  }
  const run = activeRun(status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined) return;
  const ordered = operationParts(host.uid, netboot.insteadOfOperationId);
  if (ordered?.runNumber !== run.number || step.name !== 'runner.await') return;
  const message =
    `the BMC at ${turn.spec.bmc?.address ?? '?'} switched on ${netboot.hostName} ` +
    `(${netboot.mac}) instead of ${host.name}: the two BMC addresses are crossed`;
  causedBy(turn, 'agent', message);
  failStep(turn, run, step, stepFailure('identityMismatch', message));
}

/** R10: the agent's journal against the slot of this host. */
export function foldHello(
  turn: Turn,
  journal: agent.Journal,
  listed: readonly agent.JournalledOperation[],
): void {
  resend(turn, journal);
  for (const operation of listed) {
    const parts = operationParts(turn.host.uid, operation.operationId);
    if (parts === undefined || parts.runNumber <= turn.record.runCount) continue;
    const reason = `the agent works on ${operation.operationId}, which was never ordered from here`;
    if (turn.status.holds.some((hold) => hold.reason === reason)) continue;
    turn.status.holds.push(
      create(HoldSchema, { scope: HoldScope.WORK, by: 'system', reason, since: now(turn) }),
    );
    causedBy(turn, 'agent', 'unknownWork');
  }
  if (turn.record.forgetting) turn.effects.push({ kind: 'forget' });
}

/** The agent has dropped everything of this host. */
export function foldForgotten(turn: Turn): void {
  turn.record.forgetting = false;
}
