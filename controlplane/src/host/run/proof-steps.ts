/**
 * The position of the second reading after a power cycle in a run's list
 * (`erasure/power-cycle.ts`). It goes directly after the first boot of the runner. It gets a boot
 * of its own before a use of the host without such a boot (rescue, an image over the network). In a
 * clean with a reading of its own, it goes to the end. Pure.
 */
import {
  isErasure,
  RerunClass,
  type Run,
  RunKind,
  type RunStep,
  verifyErasedStep,
} from '@rackwright/messages';
import { isRereadingDue, isUsedSince, plansToProve, provesAtOnce } from '../erasure/power-cycle.ts';
import { isStepOver, type PassView } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { engineSteps } from '../pass/step-names.ts';
import { knownSteps } from './known-steps.ts';
import { named, newStep } from './render.ts';

/** The steps for a clean's own reading, once its host is off. */
const frame = [
  engineSteps.bootRunner,
  engineSteps.awaitRunner,
  verifyErasedStep,
  engineSteps.off,
] as const;

/** The steps before a boot without a usable runner; the host is off there. */
const frameBeforeUse = [
  engineSteps.bootRunner,
  engineSteps.awaitRunner,
  engineSteps.inspect,
  verifyErasedStep,
  engineSteps.off,
] as const;

/** Our own boots into a system that may write: in rescue the runner accepts no step. */
const usesHost: ReadonlySet<string> = new Set([engineSteps.bootRescue, engineSteps.bootImage]);

/** The steps of a run, with the pending reading. */
export function withProof(pass: PassView, kind: RunKind, steps: readonly RunStep[]): RunStep[] {
  if (!isRereadingDue(pass)) return [...steps];
  // Which of its boots a template takes is unknown: each may be the first.
  const everywhere = kind === RunKind.WORKFLOW;
  let isAdded = false;
  return steps.flatMap((step, at) => {
    const isUp = step.name === engineSteps.awaitRunner;
    const isInspection = step.name === engineSteps.inspect && isUpBefore(steps, at);
    if (usesHost.has(step.name) && !isAdded) {
      isAdded = true;
      return [...stepsNamed(pass, ...frameBeforeUse), step];
    }
    const isInspectionNext = steps[at + 1]?.name === engineSteps.inspect;
    if (!((isUp && !isInspectionNext) || isInspection) || (isAdded && !everywhere)) return [step];
    isAdded = true;
    return [step, ...stepsNamed(pass, verifyErasedStep)];
  });
}

function isUpBefore(steps: readonly RunStep[], at: number): boolean {
  return steps[at - 1]?.name === engineSteps.awaitRunner;
}

/**
 * Adds an automatic clean's own reading at its end, where that is wanted. Called again once the
 * disks are known, because they may require it.
 */
export function addProofAtEnd(pass: PassView, run: Run): void {
  if (run.kind !== RunKind.CLEAN || run.manual || !provesAtOnce(pass)) return;
  const erased = run.steps.findLastIndex(({ name }) => isErasure(name));
  const isReading = ({ name }: RunStep, at: number) => at > erased && name === verifyErasedStep;
  if (erased === -1 || run.steps.some(isReading)) return;
  run.steps.push(...stepsNamed(pass, ...frame));
}

/** The steps as defined for a reading, whatever a runner lists. */
function stepsNamed({ snapshot }: PassView, ...names: readonly string[]): RunStep[] {
  const known = knownSteps(snapshot);
  const reading = { destructive: false, abortable: true, rerunClass: RerunClass.SAFE };
  return named(...names).map((wanted) => {
    const step = newStep(known, wanted);
    return wanted.step === verifyErasedStep ? { ...step, ...reading } : step;
  });
}

/** Whether a step is a reading with nothing to read. */
export function isProofUnneeded(pass: PassView, run: RunView, step: StepView): boolean {
  if (step.name !== verifyErasedStep || isStepOver(step)) return false;
  // A reading that has begun may have found data. Only a use of the disks ends the question.
  if (step.attempt > 0 && !isUsedSince(pass)) return false;
  return plansToProve(pass, run).length === 0;
}
