/**
 * Where reading again after a power cycle stands in the list of a run (`erasure/power-cycle.ts`):
 * behind the first boot of the runner, before anything else; in a boot of its own before what uses
 * the host without one (rescue, an image over the network), and, where a clean does it itself, at
 * its end. Pure.
 */
import {
  isErasure,
  RerunClass,
  type Run,
  RunKind,
  type RunStep,
  StepState,
  verifyErasedStep,
} from '@rackwright/messages';
import { isDue, plansToProve, provesAtOnce } from '../erasure/power-cycle.ts';
import { isStepOver, type Pass } from '../pass/pass.ts';
import { engineSteps } from '../pass/step-names.ts';
import { knownSteps } from './known-steps.ts';
import { named, newStep } from './render.ts';

/** What a clean that reads again itself does once its host is off. */
const frame = [
  engineSteps.bootRunner,
  engineSteps.awaitRunner,
  verifyErasedStep,
  engineSteps.off,
] as const;

/** What goes before a boot that no runner can be asked in; the host is off there. */
const frameBeforeUse = [
  engineSteps.bootRunner,
  engineSteps.awaitRunner,
  engineSteps.inspect,
  verifyErasedStep,
  engineSteps.off,
] as const;

/** Boots of our own into something that may write: in rescue the runner takes no step. */
const usesHost: ReadonlySet<string> = new Set([engineSteps.bootRescue, engineSteps.bootImage]);

/** The steps of a run, with the reading that is due. */
export function withProof(pass: Pass, kind: RunKind, steps: readonly RunStep[]): RunStep[] {
  if (!isDue(pass)) return [...steps];
  // Which of its boots a template takes is not known: each may be the first.
  const everywhere = kind === RunKind.WORKFLOW;
  let placed = false;
  return steps.flatMap((step, at) => {
    const isUp = step.name === engineSteps.awaitRunner;
    const looked = step.name === engineSteps.inspect && isUpBefore(steps, at);
    if (usesHost.has(step.name) && !placed) {
      placed = true;
      return [...stepsNamed(pass, ...frameBeforeUse), step];
    }
    const looksNext = steps[at + 1]?.name === engineSteps.inspect;
    if (!((isUp && !looksNext) || looked) || (placed && !everywhere)) return [step];
    placed = true;
    return [step, ...stepsNamed(pass, verifyErasedStep)];
  });
}

function isUpBefore(steps: readonly RunStep[], at: number): boolean {
  return steps[at - 1]?.name === engineSteps.awaitRunner;
}

/**
 * Has an automatic clean read again itself at its end, where that is wanted. Asked once more when
 * its disks are known: what is learnt of them may ask for it.
 */
export function addProofAtEnd(pass: Pass, run: Run): void {
  if (run.kind !== RunKind.CLEAN || run.manual || !provesAtOnce(pass)) return;
  const erased = run.steps.findLastIndex(({ name }) => isErasure(name));
  const isReading = ({ name }: RunStep, at: number) => at > erased && name === verifyErasedStep;
  if (erased === -1 || run.steps.some(isReading)) return;
  run.steps.push(...stepsNamed(pass, ...frame));
}

/** Reading is what it is, whatever a runner says of it. */
function stepsNamed({ context }: Pass, ...names: readonly string[]): RunStep[] {
  const known = knownSteps(context);
  const reading = { destructive: false, abortable: true, rerunClass: RerunClass.SAFE };
  return named(...names).map((wanted) => {
    const step = newStep(known, wanted);
    return wanted.step === verifyErasedStep ? { ...step, ...reading } : step;
  });
}

/** Leaves out a reading with nothing to read; whether it did. */
export function skipProof(pass: Pass, run: Run, step: RunStep): boolean {
  if (step.name !== verifyErasedStep || isStepOver(step) || step.attempt > 0) return false;
  if (plansToProve(pass, run).length > 0) return false;
  step.state = StepState.SKIPPED;
  step.skippedBecause = 'nothing that was erased has to be read again';
  return true;
}
