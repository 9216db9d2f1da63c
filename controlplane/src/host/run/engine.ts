/**
 * The one step engine: starts runs, begins their steps, and ends them. What each step asks of the
 * agent and what its completion must show stands in `steps.ts` and `steps/`.
 *
 * Must not: fold in results (`fold.ts`) or decide where a run leaves the host (`landing.ts`).
 */

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  FailureType,
  HostState,
  RerunClass,
  type Run,
  type RunFailure,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  type RunStep,
  type ShutdownPolicy,
  StepState,
} from '@rackwright/messages';
import { reachProblem } from '../../steps/index.ts';
import { stayIn, tooLateToTakeOut } from '../deployment/still-in.ts';
import { usedSinceErased } from '../erasure/certify.ts';
import { dropUsed, stayDue } from '../erasure/power-cycle.ts';
import { burnInMs } from '../erasure/times.ts';
import { bootAfterLoss, bootOnceMore } from '../operation/boots.ts';
import { ensureCalled, putCall } from '../operation/calls.ts';
import { leaveOpen } from '../operation/open-operations.ts';
import {
  ensureSent,
  ownTimeoutMs,
  type Postponement,
  putOperation,
} from '../operation/operation.ts';
import { shutdownOfRun } from '../operation/shutdown.ts';
import { hasRunnerPlace } from '../turn/brake.ts';
import { stepFailure } from '../turn/step-failure.ts';
import { engineSteps, isBootStep } from '../turn/step-names.ts';
import { move } from '../turn/transitions.ts';
import {
  currentStep,
  isStepOver,
  later,
  now,
  stopWaiting,
  type Turn,
  waitFor,
  waitForAgent,
} from '../turn/turn.ts';
import type { RequestedStep } from '../turn/types.ts';
import { beginClean } from './after-failure.ts';
import { followTemplate, isHeldAfter } from './follow-template.ts';
import { giveUpStep, giveUpWaiting, isForcedRemoval, limitCall } from './forced.ts';
import { knownSteps } from './known-steps.ts';
import { refusalOfUnwritten } from './old-disk.ts';
import { addProofAtEnd, skipProof, withProof } from './proof-steps.ts';
import { newStep } from './render.ts';
import { stepsOfRun } from './skeletons.ts';
import { calledStep, partOf } from './step-parts.ts';
import { skipUnneeded } from './step-turn.ts';
import { refusalOfImage } from './steps/image-of-step.ts';
import { beginUse } from './steps/power.ts';
import type { OperationOptions } from './steps/step-definition.ts';
import { stepDefinition } from './steps.ts';

/**
 * Starts a run. `requested` are the steps that somebody listed; undefined means automatic.
 * `shutdown`: how it is to take power, as it was asked for; undefined: as the spec says.
 */
export function startRun(
  turn: Turn,
  kind: RunKind,
  requestedBy: string,
  requested?: readonly RequestedStep[],
  shutdown?: ShutdownPolicy,
): void {
  const known = knownSteps(turn.context);
  const names = stepsOfRun(turn, kind, requested);
  const steps = names.map((wanted) => newStep(known, wanted));
  const asked = shutdown === undefined ? {} : { shutdown };
  enterRun(turn, kind, { requestedBy, manual: requested !== undefined, steps, ...asked });
}

/** The run becomes the host's; whatever stood there has ended. */
export function enterRun(
  turn: Turn,
  kind: RunKind,
  more: Exclude<MessageInitShape<typeof RunSchema>, Run>,
  timeoutMs = turn.context.timing.runTimeoutMs,
): void {
  const { record, status, context } = turn;
  const asked = more.shutdown as ShutdownPolicy | undefined;
  dropUsed(turn);
  const steps = withProof(turn, kind, (more.steps ?? []) as RunStep[]);
  const shutdown = shutdownOfRun(turn, steps, asked);
  record.runCount += 1n;
  const last = status.run;
  if (last?.phase === RunPhase.ENDED && last.number !== turn.endedBefore) turn.displaced.push(last);
  status.run = create(RunSchema, {
    kind,
    number: record.runCount,
    phase: RunPhase.RUNNING,
    startTime: now(turn),
    deadline: later(turn, timeoutMs + burnInMs(steps, 0)),
    runnerVersion: context.facts.runnerVersion,
    ...more,
    steps,
  });
  if (shutdown === undefined) delete status.run.shutdown;
  else status.run.shutdown = shutdown;
  addProofAtEnd(turn, status.run);
  if (kind === RunKind.CLEAN) beginClean(turn, status.run.requestedBy);
  if (endsLook.has(kind)) delete record.lookFirstSince;
  delete record.operation;
  delete record.call;
  delete record.runner;
  delete record.runnerRefused;
  delete record.netbootInstead;
  record.signs = [];
  record.devicePlan = [];
  if (kind === RunKind.CLEAN) {
    record.certified = [];
    delete record.plannedErasure;
  }
  const writes = leavesAvailable(status.run);
  if (writes && status.state === HostState.AVAILABLE) move(status, 'used');
  else if (writes && kind === RunKind.WORKFLOW) beginUse(turn);
  stayDue(turn);
  if (!leavesIntents.has(kind)) return;
  record.adoptTo = HostState.UNSPECIFIED;
  status.inRescue = false;
}

/** Runs that only who has looked asks for (`restored.ts`, G3). */
const endsLook: ReadonlySet<RunKind> = new Set([RunKind.CLEAN, RunKind.REIMAGE, RunKind.RELEASE]);

/** Runs that say nothing of what a person wanted of the host before them. */
const leavesIntents: ReadonlySet<RunKind> = new Set([
  RunKind.INSPECT,
  RunKind.CLEAN,
  RunKind.PROVISION,
  RunKind.REIMAGE,
  RunKind.SERVICE,
  RunKind.WORKFLOW,
  RunKind.RELEASE,
]);

/**
 * An available host stays so through a run that can leave nothing on its disks. What it is handed
 * over to may do anything, and is seen by nobody.
 */
function leavesAvailable({ kind, steps }: Run): boolean {
  switch (kind) {
    case RunKind.CLEAN:
      return true;
    case RunKind.PROVISION:
      // Once its image may be written, or booted: until then its certificates speak for it.
      return false;
    case RunKind.WORKFLOW:
      return steps.some(({ destructive, handOff, name, skippedBecause }) => {
        return skippedBecause === '' && (destructive || handOff || name === engineSteps.on);
      });
    default:
      return steps.some((step) => step.destructive);
  }
}

/** Takes the run as far as it goes without another event. */
export function driveRun(turn: Turn, run: Run): void {
  while (run.phase !== RunPhase.ENDED) {
    if (run.abort !== undefined && mayEndAborted(turn)) {
      const failure = abortFailure(run);
      stayIn(turn, run);
      endRun(turn, run, RunOutcome.CANCELLED, failure);
      return;
    }
    const tooLate = tooLateToTakeOut(turn, run);
    if (tooLate !== undefined) {
      stayIn(turn, run);
      endRun(turn, run, RunOutcome.CANCELLED, tooLate);
      return;
    }
    const step = currentStep(run);
    if (step === undefined && run.error !== undefined) {
      // A handler has run for the step that failed.
      endRun(turn, run, RunOutcome.FAILED);
      return;
    }
    if (step === undefined) {
      const used = usedSinceErased(turn, run);
      endRun(turn, run, used === undefined ? RunOutcome.SUCCEEDED : RunOutcome.FAILED, used);
      return;
    }
    if (isStepOver(step)) run.currentStep += 1;
    else if (!hasRunnerPlace(turn, run)) return;
    else if (step.state === StepState.PENDING) {
      if (!skipUnneeded(run) && !skipProof(turn, run, step)) beginStep(turn, run, step);
    } else if (!driveStep(turn, run, step) && !giveUpWaiting(turn, run, step)) return;
  }
}

/** An abort ends the run at once when nothing is under way; else the cancelled operation does. */
function mayEndAborted(turn: Turn): boolean {
  return turn.record.operation === undefined || turn.record.operation.sentTo === undefined;
}

function abortFailure(run: Run): RunFailure {
  const step = currentStep(run);
  const at = step === undefined ? 'its end' : calledStep(step);
  const reason = run.abort?.reason ? `: ${run.abort.reason}` : '';
  const by = run.abort?.by ?? 'a person';
  return stepFailure('cancelled', `aborted during ${at} by ${by}${reason}`);
}

function beginStep(turn: Turn, run: Run, step: RunStep): void {
  step.state = StepState.RUNNING;
  step.attempt += 1;
  step.startTime = now(turn);
  delete step.word;
  const definition = stepDefinition(step);
  if (definition.kind === 'operation') definition.begin?.(turn, run);
  if (isForcedRemoval(turn, run)) limitCall(turn);
  issueOperation(turn, run, step, {}, {});
}

/** Makes the next attempt of a step, to be sent when `postponement` allows. */
export function retryStep(
  turn: Turn,
  run: Run,
  step: RunStep,
  options: OperationOptions,
  postponement: Postponement,
): void {
  step.attempt += 1;
  delete step.deadline;
  issueOperation(turn, run, step, options, postponement);
}

/**
 * Another attempt of a template's step: from its first one on, where it is several. One in the
 * runner comes behind another boot when the runner of this one is gone.
 */
export function restartStep(turn: Turn, run: Run, step: RunStep, postponement: Postponement): void {
  const { from, to } = partOf(run.steps, run.currentStep);
  const isSeveral = step.title !== '' && from < run.currentStep;
  if (isSeveral) {
    for (const each of run.steps.slice(from, to + 1)) each.failures = step.failures;
  }
  const definition = stepDefinition(step);
  const isInBand = definition.kind === 'operation' && definition.inBand === true;
  if (isInBand && !turn.record.inRunner) {
    bootAfterLoss(turn, run);
    return;
  }
  if (!isSeveral) {
    retryStep(turn, run, step, {}, postponement);
    return;
  }
  for (const each of run.steps.slice(from, run.currentStep + 1)) {
    each.state = StepState.PENDING;
    delete each.deadline;
    delete each.endTime;
  }
  run.currentStep = from;
}

function issueOperation(
  turn: Turn,
  run: Run,
  step: RunStep,
  options: OperationOptions,
  postponement: Postponement,
): void {
  const definition = stepDefinition(step);
  if (definition.kind !== 'operation') {
    delete turn.record.operation;
    const timeoutMs = ownTimeoutMs(step) ?? definition.timeoutMs(turn.context.timing, turn);
    if (timeoutMs !== undefined) step.deadline = later(turn, timeoutMs);
    if (definition.kind === 'call') putCall(turn, run, step, postponement);
    else definition.begin?.(turn);
    return;
  }
  const refusal = refusalOfImage(turn, run, step) ?? refusalOfUnwritten(run, step);
  if (refusal !== undefined) {
    failStep(turn, run, step, stepFailure('notAllowed', `${calledStep(step)}: ${refusal}`));
    return;
  }
  const kind = definition.operation(turn, run, step, options);
  if (kind.case === undefined) {
    failStep(turn, run, step, stepFailure('internal', `${calledStep(step)} has nothing to order`));
    return;
  }
  putOperation(turn, run, step, kind, postponement);
}

/**
 * What the fleet let in when the run was started, it may have taken back since. True when the call
 * of the step, which has not been made, is not made any more.
 */
function refuseCall(turn: Turn, run: Run, step: RunStep): boolean {
  if (turn.record.call === undefined || turn.record.call.callTime !== undefined) return false;
  const given = { step: step.name, arguments: step.arguments };
  const refusal = reachProblem(turn.context.fleet?.templates, given);
  if (refusal === undefined) return false;
  failStep(turn, run, step, stepFailure('notAllowed', `${calledStep(step)}: ${refusal}`));
  return true;
}

/** Returns whether the step moved, so that the run may go on at once. */
function driveStep(turn: Turn, run: Run, step: RunStep): boolean {
  if (isHeldAfter(run, step)) return false;
  const definition = stepDefinition(step);
  if (definition.kind === 'call') {
    if (refuseCall(turn, run, step)) return true;
    ensureCalled(turn, run, step);
    return false;
  }
  if (definition.kind === 'condition') {
    const met = definition.met(turn, run, step);
    const isAgentMissing = definition.needsNoAgent !== true && turn.context.session === undefined;
    if (met) completeStep(turn, run, step);
    else if (isAgentMissing) waitForAgent(turn, run);
    else {
      const { reason, message } = definition.waitsFor?.(turn) ?? definition.waiting;
      waitFor(turn, run, reason, definition.sees?.(turn, step) ?? message);
    }
    return met;
  }
  if (turn.record.operation === undefined) return false;
  const timeoutMs = definition.leftMs?.(turn, run) ?? definition.timeoutMs(turn.context.timing);
  const sent = ensureSent(turn, run, timeoutMs);
  if (sent !== 'lost') return false;
  const message = 'the agent lost the journal that this operation was sent to';
  if (definition.inBand === true && mayRunAgain(step)) bootAgain(turn, run, step, message);
  else interruptStep(turn, run, step, message);
  return true;
}

function mayRunAgain({ rerunClass }: RunStep): boolean {
  return rerunClass === RerunClass.SAFE || rerunClass === RerunClass.CHECK_FIRST;
}

/**
 * No runner of this boot takes an order any more: its grant is lost, or the machine was started
 * anew. Only another boot brings one, and that begins with switching off.
 */
export function bootAgain(turn: Turn, run: Run, step: RunStep, message: string): void {
  if (isCutShortTooOften(turn, step)) {
    failStep(turn, run, step, stepFailure('interrupted', `${calledStep(step)}: ${message}`));
    return;
  }
  bootAfterLoss(turn, run);
}

/**
 * R4: what follows an attempt that was cut short is decided here, by the step's re-run class, and
 * nowhere else.
 */
export function interruptStep(
  turn: Turn,
  run: Run,
  step: RunStep,
  message: string,
  lastProgress = '',
): void {
  if (isForcedRemoval(turn, run)) return giveUpStep(turn, run, step, message);
  const failure = stepFailure('interrupted', `${calledStep(step)}: ${message}`);
  const slot = turn.record.operation;
  if (step.rerunClass === RerunClass.NEVER_TWICE) {
    holdForPerson(turn, run, step, failure);
    return;
  }
  if (isCutShortTooOften(turn, step)) {
    failStep(turn, run, step, failure);
    return;
  }
  if (isBootStep(step.name)) {
    bootOnceMore(turn, run);
    return;
  }
  switch (step.rerunClass) {
    case RerunClass.SAFE:
      retryStep(turn, run, step, {}, {});
      return;
    case RerunClass.CHECK_FIRST:
      retryStep(turn, run, step, { checkOf: slot?.operation, lastProgress }, {});
      return;
    default:
      failStep(turn, run, step, failure);
  }
}

/** R4: whether it may run again, or is left out, is for a person to say. */
function holdForPerson(turn: Turn, run: Run, step: RunStep, failure: RunFailure): void {
  delete turn.record.operation;
  delete step.deadline;
  step.error = failure.message;
  waitFor(turn, run, 'hold', `${failure.message}; ${neverTwice}`);
}

const neverTwice = 'it never runs twice by itself';

/** Counts one more; conflicts and results that could not tell are none of these. */
function isCutShortTooOften({ context }: Turn, step: RunStep): boolean {
  step.interruptions += 1;
  return step.interruptions >= context.timing.interruptionsMax;
}

export function completeStep(turn: Turn, run: Run, step: RunStep): void {
  step.state = StepState.SUCCEEDED;
  step.endTime = now(turn);
  delete turn.record.operation;
  delete turn.record.call;
  stopWaiting(turn, run);
  run.currentStep += 1;
}

/** `isKnown`: false when the attempt may still be under way, and is only waited for no longer. */
export function failStep(
  turn: Turn,
  run: Run,
  step: RunStep,
  failure: RunFailure,
  isKnown = true,
): void {
  if (isForcedRemoval(turn, run)) return giveUpStep(turn, run, step, failure.message);
  if (run.abort === undefined) {
    const next = followTemplate(turn, run, step, failure, isKnown);
    if (next.kind === 'again') restartStep(turn, run, step, next.postponement);
    if (next.kind !== 'end') return;
  }
  step.state = StepState.FAILED;
  step.error = failure.message;
  step.endTime = now(turn);
  if (run.abort !== undefined) endRun(turn, run, RunOutcome.CANCELLED, abortFailure(run));
  // What a handler was called for is why the run fails, whatever became of the handler.
  else if (run.error !== undefined) endRun(turn, run, RunOutcome.FAILED);
  else endRun(turn, run, outcomeOf(run, step, failure), failure);
}

function outcomeOf({ kind }: Run, { title }: RunStep, { type }: RunFailure): RunOutcome {
  const hasOwn = kind === RunKind.WORKFLOW || title !== '';
  const isLate = hasOwn && type === FailureType.DEADLINE;
  return isLate ? RunOutcome.TIMED_OUT : RunOutcome.FAILED;
}

export function endRun(turn: Turn, run: Run, outcome: RunOutcome, failure?: RunFailure): void {
  turn.ended = run;
  run.phase = RunPhase.ENDED;
  run.outcome = outcome;
  run.endTime = now(turn);
  delete run.waiting;
  leaveOpen(turn);
  delete turn.record.operation;
  delete turn.record.call;
  if (failure !== undefined) run.error = failure;
  for (const step of run.steps) {
    if (step.state === StepState.PENDING) step.state = StepState.SKIPPED;
  }
}
