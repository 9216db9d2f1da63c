/**
 * A rendered template as the steps of a run: the boots of the runner before the steps that need it,
 * the state at the end, and then the handlers. Pure; plans show exactly this list.
 *
 * Invariants:
 * 1. The list never changes once the run has begun, so that a step's position identifies it. It
 *    includes steps that may not be needed; they are skipped when the run reaches them
 *    (`step-start.ts`).
 * 2. A step in the runner has a boot before it unless the runner is certainly up there.
 *
 * Must not: check what people wrote (`requested-workflow.ts`).
 */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  isTemplateStepOfRunner,
  RerunClass,
  type RunStep,
  RunStepSchema,
  StepState,
} from '@rackwright/messages';
import type { KnownStep } from '../../steps/index.ts';
import { engineSteps, intoRunner, isBootStep } from '../pass/step-names.ts';
import type { WorkflowStep } from '../pass/types.ts';
import { oldDiskArgument } from './old-disk.ts';
import { describe } from './render.ts';
import { isPlannedToSkip } from './step-parts.ts';
import { isEngineStep } from './steps.ts';

/** Further inputs of the list. */
export interface WorkflowSurroundings {
  readonly known: readonly KnownStep[];
  /** The host runs a system that must run again at the end. */
  readonly isOnInUse: boolean;
  /** Its disks may have data of an earlier use, which must not be booted unnoticed. */
  readonly isDirty: boolean;
}

/** The state of the runner before a step: `open` when it depends on skipped or failed steps. */
type RunnerIs = 'up' | 'down' | 'open';

/** The power steps of templates, as engine steps. */
const powerSteps: Readonly<Record<string, readonly string[]>> = {
  powerOff: [engineSteps.off],
  powerOn: intoRunner,
  reboot: intoRunner,
  bootDisk: [engineSteps.off, engineSteps.on],
};

/** All steps of the run, in their order. */
export function stepsOfWorkflow(
  surroundings: WorkflowSurroundings,
  listed: readonly WorkflowStep[],
): RunStep[] {
  const { isOnInUse } = surroundings;
  const main: RunStep[] = [];
  let runner: RunnerIs = 'down';
  for (const each of listed.filter(({ handler }) => !handler)) {
    if (isInRunner(each) && runner !== 'up') main.push(...frame(intoRunner));
    main.push(...stepsOf(surroundings, each));
    runner = afterwards(each, runner);
  }
  const handlers = listed
    .filter(({ handler }) => handler)
    .flatMap((each) => [
      ...(isInRunner(each) ? frame(intoRunner) : []),
      ...stepsOf(surroundings, each),
    ]);
  const boots = [...main, ...handlers].some(({ name }) => isBootStep(name));
  const end = frame(boots ? [engineSteps.off, ...(isOnInUse ? [engineSteps.on] : [])] : []);
  return [...main, ...end, ...handlers];
}

/** Whether it runs in the runner: a step that is known to be skipped does not. */
function isInRunner(each: WorkflowStep): boolean {
  return !isPlannedToSkip(each) && isTemplateStepOfRunner(each.step);
}

function afterwards(each: WorkflowStep, before: RunnerIs): RunnerIs {
  const { step, condition, handOff, onFailure, onTimeout } = each;
  if (isPlannedToSkip(each)) return before;
  const after = ((): RunnerIs => {
    switch (step) {
      case 'powerOff':
      case 'bootDisk':
        return 'down';
      case 'powerOn':
      case 'reboot':
        return endsRun(onFailure) && endsRun(onTimeout) ? 'up' : 'open';
      default:
        if (handOff) return 'down';
        return isInRunner(each) ? 'up' : before;
    }
  })();
  return condition === '' || after === before ? after : 'open';
}

/** Whether no step follows a failure. */
function endsRun(policy: string): boolean {
  return policy === '' || policy === 'fail';
}

/** The engine's own steps between those of the template: any failure in them ends the run. */
function frame(names: readonly string[]): RunStep[] {
  return names.map((name) =>
    create(RunStepSchema, {
      name,
      state: StepState.PENDING,
      rerunClass: RerunClass.SAFE,
      abortable: true,
    }),
  );
}

/** One step of a template; several engine steps share its title and its policies. */
function stepsOf(surroundings: WorkflowSurroundings, each: WorkflowStep): RunStep[] {
  const names = powerSteps[each.step] ?? [each.step];
  const needed = isPlannedToSkip(each) ? names.slice(0, 1) : names;
  return needed.map((name) => stepOf(surroundings, name, each));
}

function stepOf(
  { known, isDirty }: WorkflowSurroundings,
  name: string,
  each: WorkflowStep,
): RunStep {
  const isPower = each.step in powerSteps;
  const described = isEngineStep(name) ? undefined : describe(known, name)?.description;
  const ofAgent = each.action === 'bmc' ? described : undefined;
  return create(RunStepSchema, {
    name,
    state: StepState.PENDING,
    title: each.title,
    rerunClass: isPower ? RerunClass.SAFE : classOf(each, ofAgent?.rerunClass),
    // R8: an unspecified step of the agent counts as destructive.
    destructive: each.destructive || (ofAgent !== undefined && ofAgent.destructive !== false),
    abortable: ofAgent?.abortable ?? true,
    outOfBand: each.action === 'bmc',
    arguments: isPower ? powerArguments(name, each, isDirty) : { ...each.arguments },
    retries: each.retries,
    onFailure: each.onFailure,
    onTimeout: each.onTimeout,
    condition: each.condition,
    skipCause: each.skipCause,
    skippedBecause: each.skippedBecause,
    handOff: each.handOff,
    handler: each.handler,
    ...(each.timeoutMs === undefined ? {} : { timeout: durationFromMs(each.timeoutMs) }),
  });
}

function powerArguments(name: string, { step }: WorkflowStep, isDirty: boolean) {
  const isAsked = isDirty && name === engineSteps.on;
  return { power: step, ...(isAsked ? { [oldDiskArgument]: 'true' } : {}) };
}

/** A step that hands the machine over is never sent twice automatically. */
function classOf(each: WorkflowStep, ofAgent: RerunClass | undefined): RerunClass {
  return each.handOff ? RerunClass.NEVER_TWICE : (ofAgent ?? each.rerunClass);
}
