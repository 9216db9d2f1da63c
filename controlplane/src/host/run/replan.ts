/**
 * The runner that came up differs from the planned one. Steps that have not begun are planned again
 * from its own list, finished steps stay.
 *
 * Invariants:
 * 1. A position in the list keeps its attempt count for any step, so that ids are never reused.
 * 2. A list that a person wrote keeps its steps; if the new runner lacks one, the run ends.
 */
import {
  actors,
  type agent,
  commandStep,
  isTemplateStepOfRunner,
  ownPrefix,
  type Run,
  type RunFailure,
  RunKind,
  type RunStep,
  StepState,
  verifyErasedStep,
  writeImageStep,
} from '@rackwright/messages';
import { isStepOver, type Pass, type PassView, recordCause, runName } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { engineSteps, isOfTemplate } from '../pass/step-names.ts';
import { knownSteps, offered } from './known-steps.ts';
import { automaticSteps, newStep, renderBody } from './render.ts';
import { calledStep, isPlannedToSkip } from './step-parts.ts';
import { isEngineStep } from './steps.ts';

/** Plans the rest of a run for this runner; returns why it cannot continue, or undefined. */
export function replan(pass: Pass, run: Run, ready: agent.RunnerReady): RunFailure | undefined {
  if (ready.steps.length === 0) return undefined;
  if (run.kind === RunKind.WORKFLOW) return lackOf(run, ready);
  for (const name of [writeImageStep, verifyErasedStep, commandStep]) {
    if (isLacking(run, ready, name)) return lacks(ready, name);
  }
  if (run.runnerVersion === ready.runnerVersion) return undefined;
  const before = run.runnerVersion;
  run.runnerVersion = ready.runnerVersion;
  if (run.kind !== RunKind.CLEAN && run.kind !== RunKind.SERVICE) return undefined;
  const seen = withRunner(pass, ready);
  const pending = run.steps.slice(run.currentStep + 1);
  const rest = run.manual ? describedAnew(seen, pending) : plannedAnew(seen, run, pending);
  const missing = rest.find((step) => isMissing(seen, step));
  if (missing !== undefined) {
    const message =
      `the runner is version ${ready.runnerVersion} now (it was ${before || 'not known'}) ` +
      `and has no step ${missing.name}`;
    return stepFailure('unsupported', message);
  }
  const names = (steps: readonly RunStep[]) => steps.map(calledStep).join();
  if (names(rest) !== names(pending)) {
    const text = `${runName(run)}: its remaining steps were planned anew for runner`;
    recordCause(pass, actors.agent, `${text} ${ready.runnerVersion}`);
  }
  run.steps = [
    ...run.steps.slice(0, run.currentStep + 1),
    ...rest.map((step, index) => ({
      ...step,
      attempt: Math.max(step.attempt, pending[index]?.attempt ?? 0),
    })),
  ];
  return undefined;
}

/** R8: a template's steps are ordered only from a runner that has announced them. */
function lackOf(run: Run, ready: agent.RunnerReady): RunFailure | undefined {
  run.runnerVersion = ready.runnerVersion;
  const names = new Set(ready.steps.map(({ name }) => name));
  const step = run.steps.slice(run.currentStep).find((step) => {
    const { name, state } = step;
    const comes = state === StepState.PENDING && !isPlannedToSkip(step);
    return comes && isTemplateStepOfRunner(name) && !names.has(name);
  });
  return step === undefined ? undefined : lacks(ready, step.name);
}

function lacks({ runnerVersion }: agent.RunnerReady, step: string): RunFailure {
  const runner = `the runner (version ${runnerVersion})`;
  return stepFailure('unsupported', `${runner} has no step ${step}; build its ramdisk anew`);
}

/** R8: orders of this release go only to a runner that has announced the step. */
function isLacking(run: RunView, { steps }: agent.RunnerReady, wanted: string): boolean {
  const comes = run.steps.some(({ name }, at) => at > run.currentStep && name === wanted);
  return comes && !steps.some(({ name }) => name === wanted);
}

/** The pass as if this runner's list were the known one. */
function withRunner(pass: Pass, { steps, runnerVersion }: agent.RunnerReady): Pass {
  const facts = { ...pass.snapshot.facts, runnerSteps: offered(steps), runnerVersion };
  return { ...pass, snapshot: { ...pass.snapshot, facts } };
}

/**
 * The command behind one of the site's own programs is checked above; the run has the rest of it.
 */
function isMissing({ snapshot }: Pick<PassView, 'snapshot'>, step: StepView): boolean {
  const { name } = step;
  if (isEngineStep(name) || isOfTemplate(step)) return false;
  return !knownSteps(snapshot).some(({ description }) => description.name === name);
}

/** The same steps, with the new runner's descriptions. */
function describedAnew({ snapshot }: PassView, pending: readonly RunStep[]): RunStep[] {
  const known = knownSteps(snapshot);
  return pending.map((step) => {
    if (isStepOver(step) || isOfTemplate(step) || isMissing({ snapshot }, step)) return step;
    const { attempt, startTime, error } = step;
    const anew = newStep(known, { step: step.name, arguments: step.arguments });
    return { ...anew, attempt, error, ...(startTime === undefined ? {} : { startTime }) };
  });
}

/** Steps that still belong to the present boot. */
const leading: ReadonlySet<string> = new Set([
  engineSteps.awaitRunner,
  engineSteps.inspect,
  verifyErasedStep,
]);

/** Failed steps count too, because their run went on. */
function isOver({ state, skip }: StepView): boolean {
  return skip !== undefined || state === StepState.SUCCEEDED || state === StepState.FAILED;
}

/**
 * The automatic plan of the new runner, without finished steps; the surrounding steps and the order
 * as at the start. The site's own programs are never planned again: only those that the run still
 * has are run, in the run's form. So none of them goes after the erasure (DESIGN §5).
 */
function plannedAnew(pass: PassView, run: RunView, pending: readonly RunStep[]): RunStep[] {
  const end = pending.findLastIndex(({ name }) => name === engineSteps.inspectAgain);
  // Only the reading after a power cycle follows the final inspection.
  if (end === -1) return [...pending];
  const known = knownSteps(pass.snapshot);
  const done = new Set(run.steps.filter(isOver).map(calledStep));
  const own = new Map(pending.map((step) => [step.title, step]));
  const wanted = automaticSteps(pass).filter(({ step }) => {
    return !done.has(step) && (!step.startsWith(ownPrefix) || own.has(step));
  });
  const body = renderBody(RunKind.CLEAN, wanted, known).map((each) => {
    return own.get(each.step) ?? newStep(known, each);
  });
  const first = pending.findIndex(({ name }) => !leading.has(name));
  const head = pending.slice(0, first);
  return [...head, ...body, ...pending.slice(end)].map((step) => ({ ...step }));
}
