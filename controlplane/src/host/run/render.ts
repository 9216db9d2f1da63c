/**
 * From the wanted steps to the steps of a run: adds the boot of the runner before them, the reboots
 * that steps require, and the inspection at the end. Pure.
 *
 * Must not: check what people wrote (`requested-steps.ts`) or start anything (`engine.ts`).
 */
import { create } from '@bufbuild/protobuf';
import {
  applyVolumesStep,
  commandStep,
  isErasure,
  RerunClass,
  RunKind,
  type RunStep,
  RunStepSchema,
  StepState,
  writeImageStep,
} from '@rackwright/messages';
import { controlSteps, type KnownStep, ownArguments, withDefaults } from '../../steps/index.ts';
import type { PassView } from '../pass/pass.ts';
import { engineSteps, intoRunner } from '../pass/step-names.ts';
import type { RequestedStep } from '../pass/types.ts';
import { knownSteps, planOf } from './known-steps.ts';

const [, ...boot] = intoRunner;

/** The steps of a clean; `listed` is a person's list, undefined: automatic. */
export function cleanSteps(
  pass: PassView,
  listed: readonly RequestedStep[] | undefined,
): RequestedStep[] {
  const known = knownSteps(pass.snapshot);
  const wanted = listed ?? automaticSteps(pass);
  const body = renderBody(RunKind.CLEAN, wanted, known);
  if (listed?.some(({ step }) => needsRunner(step, known)) === false) return body;
  const head = named(...intoRunner, engineSteps.inspect);
  const inspection = named(engineSteps.inspectAgain);
  // When the list ends with a power off, the inspection goes before it.
  const off = endOfLastRunner(body);
  if (off === undefined) return [...head, ...body, ...inspection, ...named(engineSteps.off)];
  return [...head, ...body.slice(0, off), ...inspection, ...body.slice(off)];
}

export function automaticSteps(pass: PassView): RequestedStep[] {
  const { enabled } = planOf(pass.host, pass.snapshot);
  return enabled.map(({ name }) => ({ step: name, arguments: {} }));
}

/** The wanted steps, with the engine's steps between them. */
export function renderBody(
  kind: RunKind,
  wanted: readonly RequestedStep[],
  known: readonly KnownStep[],
): RequestedStep[] {
  const body = wanted.flatMap((each, index) => {
    const later = wanted.slice(index + 1);
    // Device names may change after a boot: the devices to erase are identified again.
    const inspects = kind === RunKind.CLEAN && later.some(({ step }) => isErasure(step));
    const bootAgain = named(...boot, ...(inspects ? [engineSteps.inspect] : []));
    switch (each.step) {
      case 'powerOff':
        return named(engineSteps.off);
      case 'powerOn':
        return bootAgain;
      case 'reboot':
        return [...named(engineSteps.off), ...bootAgain];
      default:
        return bootsAfter(known, each, later)
          ? [each, ...named(engineSteps.off), ...bootAgain]
          : [each];
    }
  });
  return kind === RunKind.CLEAN ? withInspectionBeforeReboot(body) : body;
}

/**
 * Whether the runner boots again after a step: where the step requires it, after a step that
 * creates new disks, and between the last of the site's own programs and an erasure. Anything that
 * a program left in memory is then gone.
 */
function bootsAfter(
  known: readonly KnownStep[],
  { step }: RequestedStep,
  later: readonly RequestedStep[],
): boolean {
  const found = describe(known, step);
  if (found?.description.rebootAfter === true || step === applyVolumesStep) return true;
  const erasure = later.findIndex((each) => isErasure(each.step));
  if (found?.source !== 'fleet' || erasure === -1) return false;
  return !later.slice(0, erasure).some((each) => {
    const boots = each.step === 'reboot' || each.step === 'powerOff';
    return boots || describe(known, each.step)?.source === 'fleet';
  });
}

/**
 * Only the session that erased can show that nothing happened in between: it inspects before it
 * ends.
 */
function withInspectionBeforeReboot(body: readonly RequestedStep[]): RequestedStep[] {
  const erased = body.findLastIndex(({ step }) => isErasure(step));
  const off = body.findIndex(({ step }, at) => at > erased && step === engineSteps.off);
  const bootsAgain = body.some(({ step }, at) => at > off && step === engineSteps.awaitRunner);
  if (erased === -1 || off === -1 || !bootsAgain) return [...body];
  return [...body.slice(0, off), ...named(engineSteps.inspectAgain), ...body.slice(off)];
}

/** Whether a step of a list asks for a booted runner. */
export function needsRunner(step: string, known: readonly KnownStep[]): boolean {
  switch (step) {
    case engineSteps.hold:
    case engineSteps.wait:
    case 'powerOff':
      return false;
    case 'powerOn':
    case 'reboot':
      return true;
    default: {
      const found = describe(known, step);
      return found?.source !== 'agent' || found.description.rebootAfter;
    }
  }
}

/** Where the list finally shuts down the runner; undefined when it is up at the end. */
function endOfLastRunner(body: readonly RequestedStep[]): number | undefined {
  const off = body.findLastIndex(({ step }) => step === engineSteps.off);
  const up = body.findLastIndex(({ step }) => step === engineSteps.awaitRunner);
  return off > up ? off : undefined;
}

/** Steps without arguments. */
export function named(...names: readonly string[]): RequestedStep[] {
  return names.map((step) => ({ step, arguments: {} }));
}

export function describe(known: readonly KnownStep[], name: string): KnownStep | undefined {
  return known.find(({ description }) => description.name === name);
}

/** A step in a run's form, before it begins. */
export function newStep(known: readonly KnownStep[], wanted: RequestedStep): RunStep {
  const found = describe(known, wanted.step);
  const control = controlSteps.find(({ name }) => name === wanted.step);
  const description = found?.description;
  return create(RunStepSchema, {
    name: wanted.step,
    state: StepState.PENDING,
    rerunClass: description?.rerunClass ?? RerunClass.SAFE,
    // R8: an unspecified step counts as destructive.
    destructive:
      description === undefined
        ? wanted.step === writeImageStep
        : description.destructive !== false,
    abortable: description?.abortable ?? true,
    rebootAfter: description?.rebootAfter ?? false,
    outOfBand: found?.source === 'agent',
    arguments: withDefaults(description ?? control, wanted.arguments),
    ...(found?.source === 'fleet' ? asCommand(found) : {}),
  });
}

/** One of the site's own programs is a command, as in a template; its own name is the title. */
function asCommand({ description, own }: Extract<KnownStep, { source: 'fleet' }>) {
  const { retries, onFailure, onTimeout, timeout } = own;
  return {
    name: commandStep,
    title: description.name,
    arguments: { ...ownArguments(own) },
    ...{ retries, onFailure, onTimeout },
    ...(timeout === undefined ? {} : { timeout }),
  };
}
