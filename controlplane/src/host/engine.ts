/**
 * The one step engine: starts runs, begins their steps, and ends them. What each step asks of the
 * agent and what its completion must show stands in `steps.ts`.
 *
 * Must not: fold in results (`fold.ts`) or decide where a run leaves the host (`machine.ts`).
 */
import { create } from '@bufbuild/protobuf';
import {
  type agent,
  HostState,
  RerunClass,
  type Run,
  type RunFailure,
  RunFailureSchema,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  type RunStep,
  RunStepSchema,
  StepState,
} from '@rackwright/api';
import { builtInSteps, cleanPlan } from '../steps/index.ts';
import { hasRunnerPlace } from './brake.ts';
import { ensureSent, type Postponement, putOperation } from './operation.ts';
import { stepFailure } from './step-failure.ts';
import { isEngineStep, type OperationOptions, stepDefinition } from './steps.ts';
import {
  currentStep,
  isStepOver,
  later,
  leaveAvailable,
  now,
  stopWaiting,
  type Turn,
  waitFor,
  waitForAgent,
} from './turn.ts';
import type { RequestedStep } from './types.ts';

/** Stands for the steps that the request or the cleaning plan brings. */
const variableSteps = 'variableSteps';

const imageSteps = [
  'power.off',
  'power.bootRunner',
  'runner.await',
  'runner.inspect',
  'deploy.write_image',
  'power.off',
  'power.on',
] as const;

/** The fixed steps of each run. */
const skeletons: Readonly<Record<number, readonly string[]>> = {
  [RunKind.VERIFY]: ['bmc.verifyAccess'],
  [RunKind.INSPECT]: [
    'power.off',
    'power.bootRunner',
    'runner.await',
    'runner.inspect',
    'power.off',
  ],
  [RunKind.CLEAN]: [
    'power.off',
    'power.bootRunner',
    'runner.await',
    'runner.inspect',
    variableSteps,
    'runner.inspectAgain',
    'power.off',
  ],
  [RunKind.POWER]: [variableSteps],
  [RunKind.PROVISION]: imageSteps,
  [RunKind.REIMAGE]: imageSteps,
  [RunKind.SERVICE]: ['power.off', 'power.bootRunner', 'runner.await', variableSteps, 'power.off'],
  [RunKind.WORKFLOW]: [variableSteps],
  [RunKind.RELEASE]: ['power.off'],
  [RunKind.RESCUE]: ['power.off', 'power.bootRescue', 'runner.await'],
  [RunKind.ADOPT]: ['bmc.verifyAccess'],
  [RunKind.DELETE]: [variableSteps, 'host.forget'],
};

/** Starts a run. `requested` are the steps that somebody listed; undefined means automatic. */
export function startRun(
  turn: Turn,
  kind: RunKind,
  requestedBy: string,
  requested?: readonly RequestedStep[],
): void {
  const { record, status, context } = turn;
  record.runCount += 1n;
  const names = (skeletons[kind] ?? []).flatMap((name) =>
    name === variableSteps ? cleanStepsOf(turn, requested) : [{ step: name, arguments: {} }],
  );
  status.run = create(RunSchema, {
    kind,
    number: record.runCount,
    phase: RunPhase.RUNNING,
    manual: requested !== undefined,
    steps: names.map((wanted) => newStep(turn, wanted)),
    startTime: now(turn),
    deadline: later(turn, context.timing.runTimeoutMs),
    requestedBy,
  });
  delete record.operation;
  delete record.runner;
  record.devicePlan = [];
  if (kind === RunKind.CLEAN) record.certified = [];
  if (kind === RunKind.CLEAN && status.state === HostState.AVAILABLE) leaveAvailable(turn);
}

function cleanStepsOf(
  turn: Turn,
  requested: readonly RequestedStep[] | undefined,
): RequestedStep[] {
  if (requested !== undefined) return [...requested];
  const plan = cleanPlan(turn.spec.cleaning, knownSteps(turn));
  return plan.enabled.map((step) => ({ step: step.name, arguments: {} }));
}

/**
 * What the host's last runner said it can do, or what the runner that we ship can. The engine's own
 * names mean the engine's steps, whatever a runner says.
 */
export function knownSteps(turn: Turn): readonly agent.StepDescription[] {
  const reported = turn.context.facts.runnerSteps.filter((step) => !isEngineStep(step.name));
  return reported.length > 0 ? reported : builtInSteps;
}

function newStep(turn: Turn, wanted: RequestedStep): RunStep {
  const known = knownSteps(turn).find((step) => step.name === wanted.step);
  return create(RunStepSchema, {
    name: wanted.step,
    state: StepState.PENDING,
    rerunClass: known?.rerunClass ?? RerunClass.SAFE,
    // R8: a runner's step that does not say counts as destructive.
    destructive: known !== undefined && known.destructive !== false,
    arguments: { ...wanted.arguments },
  });
}

/** Takes the run as far as it goes without another event. */
export function driveRun(turn: Turn, run: Run): void {
  while (run.phase !== RunPhase.ENDED) {
    if (run.abort !== undefined && mayEndAborted(turn)) {
      endRun(turn, run, RunOutcome.CANCELLED, abortFailure(run));
      return;
    }
    const step = currentStep(run);
    if (step === undefined) {
      endRun(turn, run, RunOutcome.SUCCEEDED);
      return;
    }
    if (isStepOver(step)) run.currentStep += 1;
    else if (!hasRunnerPlace(turn, run)) return;
    else if (step.state === StepState.PENDING) beginStep(turn, run, step);
    else if (!driveStep(turn, run, step)) return;
  }
}

/** An abort ends the run at once when nothing is under way; else the cancelled operation does. */
function mayEndAborted(turn: Turn): boolean {
  return turn.record.operation === undefined || turn.record.operation.sentTo === undefined;
}

function abortFailure(run: Run): RunFailure {
  const at = currentStep(run)?.name ?? 'its end';
  const reason = run.abort?.reason ? `: ${run.abort.reason}` : '';
  return create(RunFailureSchema, {
    type: 'cancelled',
    message: `aborted during ${at} by ${run.abort?.by ?? 'a person'}${reason}`,
  });
}

function beginStep(turn: Turn, run: Run, step: RunStep): void {
  step.state = StepState.RUNNING;
  step.attempt += 1;
  step.startTime = now(turn);
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

function issueOperation(
  turn: Turn,
  run: Run,
  step: RunStep,
  options: OperationOptions,
  postponement: Postponement,
): void {
  const definition = stepDefinition(step.name);
  if (definition.kind !== 'operation') {
    delete turn.record.operation;
    const timeoutMs = definition.timeoutMs(turn.context.timing);
    if (timeoutMs !== undefined) step.deadline = later(turn, timeoutMs);
    definition.begin?.(turn);
    return;
  }
  const kind = definition.operation(turn, run, step, options);
  if (kind.case === undefined) {
    failStep(turn, run, step, stepFailure('internal', `${step.name} has nothing to order`));
    return;
  }
  putOperation(turn, run, step, kind, postponement);
}

/** Returns whether the step moved, so that the run may go on at once. */
function driveStep(turn: Turn, run: Run, step: RunStep): boolean {
  const definition = stepDefinition(step.name);
  if (definition.kind === 'condition') {
    const met = definition.met(turn, run);
    if (met) completeStep(turn, run, step);
    else if (turn.context.session === undefined) waitForAgent(turn, run);
    else waitFor(turn, run, definition.waiting.reason, definition.waiting.message);
    return met;
  }
  if (turn.record.operation === undefined) return false;
  const sent = ensureSent(turn, run, definition.timeoutMs(turn.context.timing));
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
  if (step.attempt >= turn.context.timing.interruptionsMax) {
    failStep(turn, run, step, stepFailure('interrupted', `${step.name}: ${message}`));
    return;
  }
  delete turn.record.operation;
  rewind(run, 'power.off');
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
  const failure = stepFailure('interrupted', `${step.name}: ${message}`);
  const slot = turn.record.operation;
  if (step.attempt >= turn.context.timing.interruptionsMax) {
    failStep(turn, run, step, failure);
    return;
  }
  if (step.name === 'power.bootRunner') {
    rewind(run, 'power.off');
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

/**
 * A power-on that was cut short may or may not have happened, and asserting "on" again would not
 * boot a host that is on: the run goes back to switching it off. What must never run twice and is
 * done stays done.
 */
function rewind(run: Run, toStep: string): void {
  const index = run.steps.findIndex((step) => step.name === toStep);
  for (const step of run.steps.slice(index, run.currentStep + 1)) {
    if (step.rerunClass === RerunClass.NEVER_TWICE && isStepOver(step)) continue;
    step.state = StepState.PENDING;
    delete step.deadline;
  }
  run.currentStep = index;
}

export function completeStep(turn: Turn, run: Run, step: RunStep): void {
  step.state = StepState.SUCCEEDED;
  step.endTime = now(turn);
  delete turn.record.operation;
  stopWaiting(run);
  run.currentStep += 1;
}

export function failStep(turn: Turn, run: Run, step: RunStep, failure: RunFailure): void {
  step.state = StepState.FAILED;
  step.error = failure.message;
  step.endTime = now(turn);
  const outcome = run.abort === undefined ? RunOutcome.FAILED : RunOutcome.CANCELLED;
  endRun(turn, run, outcome, run.abort === undefined ? failure : abortFailure(run));
}

export function endRun(turn: Turn, run: Run, outcome: RunOutcome, failure?: RunFailure): void {
  turn.ended = run;
  run.phase = RunPhase.ENDED;
  run.outcome = outcome;
  run.endTime = now(turn);
  delete run.waiting;
  delete turn.record.operation;
  if (failure !== undefined) run.error = failure;
  for (const step of run.steps) {
    if (step.state === StepState.PENDING) step.state = StepState.SKIPPED;
  }
}
