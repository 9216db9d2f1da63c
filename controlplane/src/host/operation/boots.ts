/**
 * The boots of a run: which one a step runs under, and where the run goes on when a boot is lost.
 *
 * Invariants:
 * 1. A runner counts for the boot that it came up from, and for no other.
 * 2. Going back repeats what the lost boot may have undone, and nothing that must not run twice or
 *    that a person has decided. Of a template it repeats what succeeded in the runner, for what it
 *    left in its memory is lost, but no file on a disk, which later steps may have changed since;
 *    once a handler has been called, nothing but the boot.
 */
import {
  fileStep,
  isErasure,
  RerunClass,
  type Run,
  RunKind,
  type RunStep,
  StepState,
  verifyErasedStep,
  webhookStep,
} from '@rackwright/messages';
import { isStepOver, type Pass } from '../pass/pass.ts';
import { engineSteps, isBootStep } from '../pass/step-names.ts';
import { operationId } from './operation.ts';

/**
 * The power-on that the runner of the present step came up from; empty before the first. A run that
 * has not booted yet works in the runner that an earlier one left: a failed clean to the one that
 * resumes it, an inspection to the clean that follows it.
 */
export function bootOperationId(pass: Pass, run: Run): string {
  const index = run.steps.findLastIndex((step, at) => {
    return at <= run.currentStep && isBootStep(step.name) && step.attempt > 0;
  });
  const step = run.steps[index];
  if (step === undefined) return pass.record.runner?.bootOperationId ?? '';
  return operationId(pass, run, index, step.attempt);
}

/** Back to switching off before the boot under way: it may or may not have happened. */
export function bootOnceMore(pass: Pass, run: Run): void {
  rewind(pass, run, startOfBoot(run, run.currentStep));
}

/**
 * Back to a boot from which everything is done again that another use of the machine could have
 * undone: nobody saw what ran since its runner was last heard. `isErasedAgain`: also what a reading
 * after it would show, for that has shown that the erasure is undone.
 */
export function bootAfterLoss(pass: Pass, run: Run, { isErasedAgain = false } = {}): void {
  pass.record.inRunner = false;
  const erased = run.steps.findIndex(
    ({ name, state }) => isErasure(name) && state === StepState.SUCCEEDED,
  );
  const here = startOfBoot(run, run.currentStep);
  // What the reading after a power cycle is to show is shown by another boot as well.
  const isShown = !isErasedAgain && readsAtEnd(run, here);
  if (erased === -1 || isShown) return rewind(pass, run, here);
  rewind(pass, run, startOfBoot(run, Math.min(erased, run.currentStep)));
}

/** Whether the boot that begins at `index` is that of the reading at the end of a clean. */
function readsAtEnd({ steps }: Run, index: number): boolean {
  const erased = steps.findLastIndex(({ name }) => isErasure(name));
  if (index < erased) return false;
  const [, , next] = steps.slice(index + 1);
  return next?.name === verifyErasedStep;
}

/** The switching off that comes before the boot which the step at `index` runs under. */
function startOfBoot({ steps }: Run, index: number): number {
  const isBoot = ({ name }: RunStep, at: number) => at <= index && isBootStep(name);
  const own = steps.findLastIndex((step, at) => {
    return isBoot(step, at) && step.state !== StepState.SKIPPED;
  });
  // In the boot of an earlier run: its own, which it has left out until now, is taken.
  const boot = own === -1 ? steps.findLastIndex(isBoot) : own;
  return steps.findLastIndex(({ name }, at) => at < boot && name === engineSteps.off);
}

/** Nothing to go back to leaves the run where it is. */
function rewind(pass: Pass, run: Run, index: number): void {
  delete pass.record.operation;
  if (index === -1) return;
  for (const step of run.steps.slice(index, run.currentStep + 1)) {
    if (isStepOver(step) && (stays(step) || staysInTemplate(run, step))) continue;
    if (isErasure(step.name)) {
      pass.record.certified = [];
      pass.record.unproved = [];
    }
    step.state = StepState.PENDING;
    if (step.title === '') step.skippedBecause = '';
    delete step.deadline;
    delete step.endTime;
  }
  run.currentStep = index;
}

function staysInTemplate({ kind, error }: Run, step: RunStep): boolean {
  if (kind !== RunKind.WORKFLOW) return false;
  const { state, name } = step;
  if (state !== StepState.SUCCEEDED || name === webhookStep || isOnDisk(step)) return true;
  const isOfBoot = name === engineSteps.off || isBootStep(name) || name === engineSteps.awaitRunner;
  return error !== undefined && !isOfBoot;
}

function isOnDisk({ name, arguments: given }: RunStep): boolean {
  return name === fileStep && (given['disk'] ?? '') !== '';
}

function stays({ name, rerunClass, outOfBand, skip }: RunStep): boolean {
  if (skip !== undefined || outOfBand) return true;
  return (
    rerunClass === RerunClass.NEVER_TWICE || name === engineSteps.hold || name === engineSteps.wait
  );
}
