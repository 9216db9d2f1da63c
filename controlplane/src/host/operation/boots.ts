/**
 * The boots of a run: which one a step runs under, and where the run resumes when a boot is lost.
 *
 * Invariants:
 * 1. A runner counts only for the boot that it came up from.
 * 2. Going back repeats steps whose effect the lost boot may have undone, but no step that must not
 *    run twice or that a person has decided. In a template it repeats the steps that succeeded in
 *    the runner, because their results in its memory are lost. It does not restore files on a disk,
 *    which later steps may have changed. Once a handler has been called, it repeats only the boot.
 */
import {
  fileStep,
  isErasure,
  type OperationId,
  RerunClass,
  type Run,
  RunKind,
  StepState,
  verifyErasedStep,
  webhookStep,
} from '@rackwright/messages';
import { isStepOver, type Pass, type PassView } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { unskip } from '../pass/skip-reason.ts';
import { engineSteps, isBootStep, isOfTemplate } from '../pass/step-names.ts';
import { operationId } from './operation.ts';

/**
 * The power-on from which the runner of the present step came up; empty before the first. A run
 * without a boot of its own uses the runner that an earlier one left: a failed clean leaves it to
 * the run that resumes it, an inspection to the clean that follows it.
 */
export function bootOperationId(pass: PassView, run: RunView): OperationId {
  const index = run.steps.findLastIndex((step, at) => {
    return at <= run.currentStep && isBootStep(step.name) && step.attempt > 0;
  });
  const step = run.steps[index];
  if (step === undefined) return pass.record.runner?.bootOperationId ?? '';
  return operationId(pass, run, index, step.attempt);
}

/** Repeats the present boot from its power off, because nobody knows whether it happened. */
export function rewindToBoot(pass: Pass, run: Run): void {
  rewind(pass, run, startOfBoot(run, run.currentStep));
}

/**
 * Repeats a boot after the runner was lost. Nobody knows what the machine ran since. So every step
 * that another system could have undone is repeated. With `isErasedAgain` the erasure is repeated,
 * too: a later reading has shown that it is undone.
 */
export function rewindAfterBootLoss(pass: Pass, run: Run, { isErasedAgain = false } = {}): void {
  pass.record.inRunner = false;
  const erased = run.steps.findIndex(
    ({ name, state }) => isErasure(name) && state === StepState.SUCCEEDED,
  );
  const here = startOfBoot(run, run.currentStep);
  // Another boot serves equally well for the reading after a power cycle.
  const isShown = !isErasedAgain && readsAtEnd(run, here);
  if (erased === -1 || isShown) return rewind(pass, run, here);
  rewind(pass, run, startOfBoot(run, Math.min(erased, run.currentStep)));
}

/** Whether the boot that begins at `index` is for the reading at the end of a clean. */
function readsAtEnd({ steps }: RunView, index: number): boolean {
  const erased = steps.findLastIndex(({ name }) => isErasure(name));
  if (index < erased) return false;
  const [, , next] = steps.slice(index + 1);
  return next?.name === verifyErasedStep;
}

/** The power off before the boot that the step at `index` runs under. */
function startOfBoot({ steps }: RunView, index: number): number {
  const isBoot = ({ name }: StepView, at: number) => at <= index && isBootStep(name);
  const own = steps.findLastIndex((step, at) => {
    return isBoot(step, at) && step.state !== StepState.SKIPPED;
  });
  // A run in the boot of an earlier run takes its own boot, which it has skipped until now.
  const boot = own === -1 ? steps.findLastIndex(isBoot) : own;
  return steps.findLastIndex(({ name }, at) => at < boot && name === engineSteps.off);
}

/** Without a step to go back to, the run stays where it is. */
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
    if (!isOfTemplate(step)) unskip(step);
    delete step.deadline;
    delete step.endTime;
  }
  run.currentStep = index;
}

function staysInTemplate({ kind, error }: RunView, step: StepView): boolean {
  if (kind !== RunKind.WORKFLOW) return false;
  const { state, name } = step;
  if (state !== StepState.SUCCEEDED || name === webhookStep || isOnDisk(step)) return true;
  const isOfBoot = name === engineSteps.off || isBootStep(name) || name === engineSteps.awaitRunner;
  return error !== undefined && !isOfBoot;
}

function isOnDisk({ name, arguments: given }: StepView): boolean {
  return name === fileStep && (given['disk'] ?? '') !== '';
}

function stays({ name, rerunClass, outOfBand, skip }: StepView): boolean {
  if (skip !== undefined || outOfBand) return true;
  return (
    rerunClass === RerunClass.NEVER_TWICE || name === engineSteps.hold || name === engineSteps.wait
  );
}
