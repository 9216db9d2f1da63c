/** Steps that the runner of the run's boot takes, and what it is told of them. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  burnInDiskStep,
  isErasure,
  type Run,
  type RunStep,
  verifyErasedStep,
  writeImageStep,
} from '@rackwright/messages';
import { secretUses } from '../../../steps/index.ts';
import { noteDeployed } from '../../deployment/deployment.ts';
import { beginWriteOver } from '../../deployment/written-disk.ts';
import { certifyErasure } from '../../erasure/certify.ts';
import { challengeSeed } from '../../erasure/derive.ts';
import { plansOfStep } from '../../erasure/device-plan.ts';
import { machineIdentity } from '../../erasure/identity.ts';
import { hasLooked, plansToProve, proveErased } from '../../erasure/power-cycle.ts';
import { burnInMs, eraseTimeoutMs, readTimeoutMs } from '../../erasure/times.ts';
import { bootOperationId } from '../../operation/boots.ts';
import { operationId } from '../../operation/operation.ts';
import { currentStep, inventoryNow, type Turn } from '../../turn/turn.ts';
import { credentialVersions, imageOf } from './image-of-step.ts';
import { deploymentFor, orderOf } from './of-agent.ts';
import type { OperationOptions, OperationStep } from './step-definition.ts';

export const runnerStep: OperationStep = {
  kind: 'operation',
  inBand: true,
  timeoutMs: (timing) => timing.cleanStepTimeoutMs,
  operation: (turn, run, step, options) => ({
    case: 'runStep',
    value: runStep(turn, run, step, options),
  }),
  complete: (turn, run, step, result) =>
    isErasure(step.name) ? certifyErasure(turn, run, step, result.evidence) : undefined,
  leftMs: (turn, run) => {
    const { cleanStepTimeoutMs } = turn.context.timing;
    const { devicePlan, diskSpeeds } = turn.record;
    const step = currentStep(run);
    const name = step?.name ?? '';
    if (!isErasure(name)) {
      return cleanStepTimeoutMs + burnInMs(step === undefined ? [] : [step], devicePlan.length);
    }
    return eraseTimeoutMs(diskSpeeds, plansOfStep(devicePlan, name), cleanStepTimeoutMs);
  },
};

/** Reads again what was erased before a power cycle; it writes nothing. */
export const verifyErased: OperationStep = {
  ...runnerStep,
  complete: (turn, _run, step, result) => proveErased(turn, step, result.evidence),
  leftMs: (turn, run) =>
    readTimeoutMs(
      turn.record.diskSpeeds,
      plansToProve(turn, run),
      turn.context.timing.cleanStepTimeoutMs,
    ),
};

/** While it writes, the disk holds no whole image. */
export const writeImage: OperationStep = {
  kind: 'operation',
  inBand: true,
  operation: runnerStep.operation,
  timeoutMs: (timing) => timing.imageTimeoutMs,
  begin: beginWriteOver,
  complete: (turn, run) => {
    noteDeployed(turn, run);
    return undefined;
  },
};

function runStep(
  turn: Turn,
  run: Run,
  step: RunStep,
  { checkOf, lastProgress }: OperationOptions,
): agent.RunStep {
  const checked = checkOf?.kind.case === 'runStep' ? checkOf.kind.value : undefined;
  const image = imageOf(turn, step);
  const id = operationId(turn, run, run.currentStep, step.attempt);
  return create(agent.RunStepSchema, {
    ...orderOf(step, checked === undefined ? modeOf(step) : agent.StepMode.CHECK),
    arguments: {
      ...step.arguments,
      ...checked?.arguments,
      ...(lastProgress === undefined || lastProgress === '' ? {} : { lastProgress }),
    },
    bootOperationId: bootOperationId(turn, run),
    runnerSession: runnerSession(turn, run),
    devices: devicesOf(turn, run, step),
    challengeSeed: checked?.challengeSeed ?? challengeSeed(turn.context.incarnation, id),
    allowUnprovenIdentity: turn.spec.cleaning?.allowUnprovenIdentity ?? false,
    allowDiskless: turn.spec.cleaning?.allowDiskless ?? false,
    ...(step.handOff ? { handOff: true } : {}),
    ...(image === undefined ? {} : { image }),
    ...deploymentFor(turn, run, step),
    secrets: secretUses(step.arguments, credentialVersions(turn)),
    ...witnesses(turn),
  });
}

/** Guard 0 in the runner: what the machine itself must say. */
function witnesses(turn: Turn) {
  const expectedIdentity = machineIdentity(turn);
  return expectedIdentity === undefined ? {} : { expectedIdentity };
}

/** Reading again checks, and does nothing else. */
function modeOf({ name }: RunStep): agent.StepMode {
  return name === verifyErasedStep ? agent.StepMode.CHECK : agent.StepMode.RUN;
}

/** The devices that a step may touch, and how; none where it is about none. */
function devicesOf(turn: Turn, run: Run, { name }: RunStep): agent.DevicePlan[] {
  if (name === verifyErasedStep) return plansToProve(turn, run);
  if (name === writeImageStep) return devicesSeen(turn, run);
  return isErasure(name) || name === burnInDiskStep
    ? plansOfStep(turn.record.devicePlan, name)
    : [];
}

/**
 * The runner of the present boot. An agent whose disk was put back to an older copy knows neither
 * which runner has had the boot nor what that one has begun: it must not hand that to the next.
 */
function runnerSession(turn: Turn, run: Run): string {
  const { runner } = turn.record;
  return runner?.bootOperationId === bootOperationId(turn, run) ? runner.runnerSession : '';
}

/** An image goes onto none that came after the inspection of its run; names are enough. */
function devicesSeen(turn: Turn, run: Run): agent.DevicePlan[] {
  const { devices = [] } = (hasLooked(run) ? inventoryNow(turn) : undefined) ?? {};
  return devices.map(({ serial, wwn }) => {
    return create(agent.DevicePlanSchema, { device: { serial, wwn } });
  });
}
