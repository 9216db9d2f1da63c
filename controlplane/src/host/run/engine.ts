/**
 * The step engine: starts runs, begins their steps, and ends them. `steps.ts` and `steps/` define
 * the order of each step and what its completion must show.
 *
 * Must not: fold in results (`fold.ts`) or decide the host's state after a run (`landing.ts`).
 */

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type Actor,
  asRunNumber,
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
  readActor,
  type ShutdownPolicy,
  StepState,
  type store,
} from '@rackwright/messages';
import { reachProblem } from '../../steps/index.ts';
import { resetStepBeforeTakeOut, tooLateToTakeOut } from '../deployment/still-in.ts';
import { notCleanAtEnd } from '../erasure/certify.ts';
import { dropUsed, keepRereadingDue } from '../erasure/power-cycle.ts';
import { burnInMs } from '../erasure/times.ts';
import { rewindAfterBootLoss, rewindToBoot } from '../operation/boots.ts';
import { ensureCalled, putCall } from '../operation/calls.ts';
import { noteOpenOperation } from '../operation/open-operations.ts';
import {
  ensureSent,
  ownTimeoutMs,
  type Postponement,
  putOperation,
} from '../operation/operation.ts';
import { shutdownOfRun } from '../operation/shutdown.ts';
import { takeRunnerSlot } from '../pass/brake.ts';
import {
  currentStep,
  isStepOver,
  type Pass,
  type PassView,
  stopWaiting,
  timeAfter,
  timeNow,
  waitFor,
  waitForAgent,
} from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { skip, skipReasons } from '../pass/skip-reason.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { engineSteps, isBootStep, isOfTemplate } from '../pass/step-names.ts';
import { move } from '../pass/transitions.ts';
import type { RequestedStep } from '../pass/types.ts';
import { beginClean } from './after-failure.ts';
import { followTemplate, isHeldAfter } from './follow-template.ts';
import { giveUpStep, giveUpWaiting, isForcedRemoval, limitCall } from './forced.ts';
import { knownSteps } from './known-steps.ts';
import { refusalOfUnwritten } from './old-disk.ts';
import { addProofAtEnd, isProofUnneeded, withProof } from './proof-steps.ts';
import { newStep } from './render.ts';
import { stepsOfRun } from './skeletons.ts';
import { calledStep, isPlannedToSkip, partOf } from './step-parts.ts';
import type { LastAttempt } from './step-policy.ts';
import { skipSteps, unneededPart } from './step-start.ts';
import { refusalOfImage } from './steps/image-of-step.ts';
import { beginUse } from './steps/power.ts';
import type { OperationOptions } from './steps/step-definition.ts';
import { stepDefinition } from './steps.ts';

/**
 * Starts a run. `requested` are the listed steps; undefined means automatic. `shutdown`: the
 * requested shutdown policy; undefined: the spec's.
 */
export function startRun(
  pass: Pass,
  kind: RunKind,
  requestedBy: Actor,
  requested?: readonly RequestedStep[],
  shutdown?: ShutdownPolicy,
): void {
  const known = knownSteps(pass.snapshot);
  const names = stepsOfRun(pass, kind, requested);
  const steps = names.map((wanted) => newStep(known, wanted));
  const chosenShutdown = shutdown === undefined ? {} : { shutdown };
  enterRun(pass, kind, { requestedBy, manual: requested !== undefined, steps, ...chosenShutdown });
}

/** Makes this the host's run; any earlier one has ended. */
export function enterRun(
  pass: Pass,
  kind: RunKind,
  more: Exclude<MessageInitShape<typeof RunSchema>, Run>,
  timeoutMs = pass.snapshot.timing.runTimeoutMs,
): void {
  const { record, status, snapshot } = pass;
  const policy = more.shutdown as ShutdownPolicy | undefined;
  dropUsed(pass);
  const steps = withProof(pass, kind, (more.steps ?? []) as RunStep[]);
  const shutdown = shutdownOfRun(pass, steps, policy);
  record.runCount += 1n;
  const last = status.run;
  if (last?.phase === RunPhase.ENDED && last.number !== pass.endedBefore) pass.displaced.push(last);
  status.run = create(RunSchema, {
    kind,
    number: asRunNumber(record.runCount),
    phase: RunPhase.RUNNING,
    startTime: timeNow(pass),
    deadline: timeAfter(pass, timeoutMs + burnInMs(steps, 0)),
    runnerVersion: snapshot.facts.runnerVersion,
    ...more,
    steps,
  });
  if (shutdown === undefined) delete status.run.shutdown;
  else status.run.shutdown = shutdown;
  addProofAtEnd(pass, status.run);
  if (kind === RunKind.CLEAN) beginClean(pass, readActor(status.run.requestedBy));
  clearRunRecord(record, kind);
  const writes = endsAvailability(status.run);
  if (writes && status.state === HostState.AVAILABLE) move(status, 'used');
  else if (writes && kind === RunKind.WORKFLOW) beginUse(pass);
  keepRereadingDue(pass);
  if (runsEndingIntents.has(kind)) endIntents(pass);
}

/** Clears what earlier runs have left in the record and this one must not find. */
function clearRunRecord(record: store.HostRecord, kind: RunKind): void {
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
  if (runsEndingReview.has(kind)) delete record.lookFirstSince;
}

function endIntents({ record, status }: Pass): void {
  record.adoptTo = HostState.UNSPECIFIED;
  status.inRescue = false;
}

/** Runs that end a person's review: they are requested only after it (`restored.ts`, G3). */
const runsEndingReview: ReadonlySet<RunKind> = new Set([
  RunKind.CLEAN,
  RunKind.REIMAGE,
  RunKind.RELEASE,
]);

/** Runs that end an earlier request to adopt the host, and its stay in rescue. */
const runsEndingIntents: ReadonlySet<RunKind> = new Set([
  RunKind.INSPECT,
  RunKind.CLEAN,
  RunKind.PROVISION,
  RunKind.REIMAGE,
  RunKind.SERVICE,
  RunKind.WORKFLOW,
  RunKind.RELEASE,
]);

/**
 * Whether an available host is no longer available once the run begins: the run may write to its
 * disks. A system that it is handed over to may do anything, and is not observed.
 */
function endsAvailability({ kind, steps }: RunView): boolean {
  switch (kind) {
    case RunKind.CLEAN:
      return true;
    case RunKind.PROVISION:
      // Only once its image may be written, or booted: until then its certificates apply.
      return false;
    case RunKind.WORKFLOW:
      return steps.some((step) => {
        const { destructive, handOff, name } = step;
        return !isPlannedToSkip(step) && (destructive || handOff || name === engineSteps.on);
      });
    default:
      return steps.some((step) => step.destructive);
  }
}

/** Advances the run as far as possible without another event. */
export function driveRun(pass: Pass, run: Run): void {
  while (run.phase !== RunPhase.ENDED) {
    if (run.abort !== undefined && mayEndAborted(pass)) {
      const failure = abortFailure(run);
      resetStepBeforeTakeOut(pass, run);
      endRun(pass, run, RunOutcome.CANCELLED, failure);
      return;
    }
    const tooLate = tooLateToTakeOut(pass, run);
    if (tooLate !== undefined) {
      resetStepBeforeTakeOut(pass, run);
      endRun(pass, run, RunOutcome.CANCELLED, tooLate);
      return;
    }
    const step = currentStep(run);
    if (step === undefined && run.error !== undefined) {
      // The handler of the failed step has finished.
      endRun(pass, run, RunOutcome.FAILED);
      return;
    }
    if (step === undefined) {
      const failure = notCleanAtEnd(pass, run);
      const isWell = failure === undefined;
      endRun(pass, run, isWell ? RunOutcome.SUCCEEDED : RunOutcome.FAILED, failure);
      return;
    }
    if (isStepOver(step)) run.currentStep += 1;
    else if (!takeRunnerSlot(pass, run)) return;
    else if (step.state === StepState.PENDING) {
      beginOrSkip(pass, run, step);
    } else if (!driveStep(pass, run, step) && !giveUpWaiting(pass, run, step)) return;
  }
}

/**
 * An abort ends the run at once when no work is in progress; otherwise the cancelled operation ends
 * it.
 */
function mayEndAborted(pass: PassView): boolean {
  return pass.record.operation === undefined || pass.record.operation.sentTo === undefined;
}

function abortFailure(run: RunView): RunFailure {
  const step = currentStep(run);
  const at = step === undefined ? 'its end' : calledStep(step);
  const reason = run.abort?.reason ? `: ${run.abort.reason}` : '';
  const by = run.abort?.by ?? 'a person';
  return stepFailure('cancelled', `aborted during ${at} by ${by}${reason}`);
}

function beginOrSkip(pass: Pass, run: Run, step: RunStep): void {
  const unneeded = unneededPart(run);
  if (unneeded !== undefined) skipSteps(unneeded.steps, unneeded.why);
  else if (isProofUnneeded(pass, run, step)) skip(step, skipReasons.nothingToRead);
  else beginStep(pass, run, step);
}

function beginStep(pass: Pass, run: Run, step: RunStep): void {
  step.state = StepState.RUNNING;
  step.attempt += 1;
  step.startTime = timeNow(pass);
  delete step.word;
  const definition = stepDefinition(step);
  if (definition.kind === 'operation') definition.begin?.(pass, run);
  if (isForcedRemoval(pass, run)) limitCall(pass);
  issueOperation(pass, run, step, {}, {});
}

/** Creates the next attempt of a step, to be sent when `postponement` permits. */
export function retryStep(
  pass: Pass,
  run: Run,
  step: RunStep,
  options: OperationOptions,
  postponement: Postponement,
): void {
  step.attempt += 1;
  delete step.deadline;
  issueOperation(pass, run, step, options, postponement);
}

/**
 * Another attempt of a template's step, from the first engine step of its part. A step in the
 * runner goes after another boot when the runner of this one is gone.
 */
export function restartStep(pass: Pass, run: Run, step: RunStep, postponement: Postponement): void {
  const { from, to } = partOf(run.steps, run.currentStep);
  const isSeveral = isOfTemplate(step) && from < run.currentStep;
  if (isSeveral) {
    for (const each of run.steps.slice(from, to + 1)) each.failures = step.failures;
  }
  const definition = stepDefinition(step);
  const isInBand = definition.kind === 'operation' && definition.inBand === true;
  if (isInBand && !pass.record.inRunner) {
    rewindAfterBootLoss(pass, run);
    return;
  }
  if (!isSeveral) {
    retryStep(pass, run, step, {}, postponement);
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
  pass: Pass,
  run: Run,
  step: RunStep,
  options: OperationOptions,
  postponement: Postponement,
): void {
  const definition = stepDefinition(step);
  if (definition.kind !== 'operation') {
    delete pass.record.operation;
    const timeoutMs = ownTimeoutMs(step) ?? definition.timeoutMs(pass.snapshot.timing, pass);
    if (timeoutMs !== undefined) step.deadline = timeAfter(pass, timeoutMs);
    if (definition.kind === 'call') putCall(pass, run, step, postponement);
    else definition.begin?.(pass);
    return;
  }
  const refusal = refusalOfImage(pass, run, step) ?? refusalOfUnwritten(run, step);
  if (refusal !== undefined) {
    failStep(pass, run, step, stepFailure('notAllowed', `${calledStep(step)}: ${refusal}`));
    return;
  }
  const kind = definition.operation(pass, run, step, options);
  if (kind.case === undefined) {
    failStep(pass, run, step, stepFailure('internal', `${calledStep(step)} has nothing to order`));
    return;
  }
  putOperation(pass, run, step, kind, postponement);
}

/**
 * The fleet may no longer permit what it permitted at the start of the run. Returns true when the
 * step's pending call is dropped.
 */
function refuseCall(pass: Pass, run: Run, step: RunStep): boolean {
  if (pass.record.call === undefined || pass.record.call.callTime !== undefined) return false;
  const given = { step: step.name, arguments: step.arguments };
  const refusal = reachProblem(pass.snapshot.fleet?.templates, given);
  if (refusal === undefined) return false;
  failStep(pass, run, step, stepFailure('notAllowed', `${calledStep(step)}: ${refusal}`));
  return true;
}

/** True: the step advanced, so that the run may go on at once. */
function driveStep(pass: Pass, run: Run, step: RunStep): boolean {
  if (isHeldAfter(run, step)) return false;
  const definition = stepDefinition(step);
  if (definition.kind === 'call') {
    if (refuseCall(pass, run, step)) return true;
    ensureCalled(pass, run, step);
    return false;
  }
  if (definition.kind === 'condition') {
    const met = definition.met(pass, run, step);
    const isAgentMissing = definition.needsNoAgent !== true && pass.snapshot.session === undefined;
    if (met) completeStep(pass, run, step);
    else if (isAgentMissing) waitForAgent(pass, run);
    else {
      const { reason, message } = definition.waitsFor?.(pass) ?? definition.waiting;
      waitFor(pass, run, reason, definition.sees?.(pass, step) ?? message);
    }
    return met;
  }
  if (pass.record.operation === undefined) return false;
  const timeoutMs = definition.leftMs?.(pass, run) ?? definition.timeoutMs(pass.snapshot.timing);
  const sent = ensureSent(pass, run, timeoutMs);
  if (sent !== 'lost') return false;
  const message = 'the agent lost the journal that this operation was sent to';
  if (definition.inBand === true && mayRunAgain(step)) interruptBoot(pass, run, step, message);
  else interruptStep(pass, run, step, message);
  return true;
}

function mayRunAgain({ rerunClass }: StepView): boolean {
  return rerunClass === RerunClass.SAFE || rerunClass === RerunClass.CHECK_FIRST;
}

/**
 * No runner of this boot accepts orders any more: its grant is lost, or the machine was restarted.
 * Only another boot brings a runner, and that begins with a power off.
 */
export function interruptBoot(pass: Pass, run: Run, step: RunStep, message: string): void {
  if (countInterruption(pass, step) === 'tooOften') {
    failStep(pass, run, step, stepFailure('interrupted', `${calledStep(step)}: ${message}`));
    return;
  }
  rewindAfterBootLoss(pass, run);
}

/**
 * R4: the step's re-run class decides what follows an interrupted attempt. Where the runner of the
 * boot is lost, `interruptBoot` decides.
 */
export function interruptStep(
  pass: Pass,
  run: Run,
  step: RunStep,
  message: string,
  lastProgress = '',
): void {
  if (isForcedRemoval(pass, run)) return giveUpStep(pass, run, step, message);
  const failure = stepFailure('interrupted', `${calledStep(step)}: ${message}`);
  const operationRecord = pass.record.operation;
  if (step.rerunClass === RerunClass.NEVER_TWICE) {
    holdForPerson(pass, run, step, failure);
    return;
  }
  if (countInterruption(pass, step) === 'tooOften') {
    failStep(pass, run, step, failure);
    return;
  }
  if (isBootStep(step.name)) {
    rewindToBoot(pass, run);
    return;
  }
  switch (step.rerunClass) {
    case RerunClass.SAFE:
      retryStep(pass, run, step, {}, {});
      return;
    case RerunClass.CHECK_FIRST:
      retryStep(pass, run, step, { checkOf: operationRecord?.operation, lastProgress }, {});
      return;
    default:
      failStep(pass, run, step, failure);
  }
}

/** R4: a person decides whether it runs again or is skipped. */
function holdForPerson(pass: Pass, run: Run, step: RunStep, failure: RunFailure): void {
  delete pass.record.operation;
  delete step.deadline;
  step.error = failure.message;
  waitFor(pass, run, 'hold', `${failure.message}; ${neverTwice}`);
}

const neverTwice = 'it never runs twice by itself';

/**
 * Counts one more interruption of the step, whatever follows; conflicts and unknown results do not
 * count. `tooOften`: the step is not tried again.
 */
function countInterruption({ snapshot }: PassView, step: RunStep): 'mayRepeat' | 'tooOften' {
  step.interruptions += 1;
  return step.interruptions >= snapshot.timing.interruptionsMax ? 'tooOften' : 'mayRepeat';
}

export function completeStep(pass: Pass, run: Run, step: RunStep): void {
  step.state = StepState.SUCCEEDED;
  step.endTime = timeNow(pass);
  delete pass.record.operation;
  delete pass.record.call;
  stopWaiting(pass, run);
  run.currentStep += 1;
}

export function failStep(
  pass: Pass,
  run: Run,
  step: RunStep,
  failure: RunFailure,
  attempt: LastAttempt = 'over',
): void {
  if (isForcedRemoval(pass, run)) return giveUpStep(pass, run, step, failure.message);
  if (run.abort === undefined) {
    const next = followTemplate(pass, run, step, failure, attempt);
    if (next.kind === 'again') restartStep(pass, run, step, next.postponement);
    if (next.kind !== 'end') return;
  }
  step.state = StepState.FAILED;
  step.error = failure.message;
  step.endTime = timeNow(pass);
  if (run.abort !== undefined) endRun(pass, run, RunOutcome.CANCELLED, abortFailure(run));
  // The failure for which a handler was called is the reason of the run's failure, whatever the
  // handler's own result.
  else if (run.error !== undefined) endRun(pass, run, RunOutcome.FAILED);
  else endRun(pass, run, outcomeOf(run, step, failure), failure);
}

function outcomeOf({ kind }: RunView, step: StepView, { type }: RunFailure): RunOutcome {
  const hasOwn = kind === RunKind.WORKFLOW || isOfTemplate(step);
  const isLate = hasOwn && type === FailureType.DEADLINE;
  return isLate ? RunOutcome.TIMED_OUT : RunOutcome.FAILED;
}

export function endRun(pass: Pass, run: Run, outcome: RunOutcome, failure?: RunFailure): void {
  pass.ended = run;
  run.phase = RunPhase.ENDED;
  run.outcome = outcome;
  run.endTime = timeNow(pass);
  delete run.waiting;
  noteOpenOperation(pass);
  delete pass.record.operation;
  delete pass.record.call;
  if (failure !== undefined) run.error = failure;
  for (const step of run.steps) {
    if (step.state === StepState.PENDING) step.state = StepState.SKIPPED;
  }
}
