/** Steps that the runner of the run's boot executes, and their orders. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  burnInDiskStep,
  isErasure,
  type RunnerSessionId,
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
import { hasInspected, plansToProve, proveErased } from '../../erasure/power-cycle.ts';
import { burnInMs, eraseTimeoutMs, readTimeoutMs } from '../../erasure/times.ts';
import { bootOperationId } from '../../operation/boots.ts';
import { operationId } from '../../operation/operation.ts';
import { currentStep, inventoryNow, type PassView } from '../../pass/pass.ts';
import type { RunView, StepView } from '../../pass/read-only.ts';
import { credentialVersions, imageOf } from './image-of-step.ts';
import { deploymentFor, orderOf } from './of-agent.ts';
import type { OperationOptions, OperationStep } from './step-definition.ts';

export const runnerStep: OperationStep = {
  kind: 'operation',
  inBand: true,
  timeoutMs: (timing) => timing.cleanStepTimeoutMs,
  operation: (pass, run, step, options) => ({
    case: 'runStep',
    value: runStep(pass, run, step, options),
  }),
  complete: (pass, run, step, result) =>
    isErasure(step.name) ? certifyErasure(pass, run, step, result.evidence) : undefined,
  leftMs: (pass, run) => {
    const { cleanStepTimeoutMs } = pass.snapshot.timing;
    const { devicePlan, diskSpeeds } = pass.record;
    const step = currentStep(run);
    const name = step?.name ?? '';
    if (!isErasure(name)) {
      return cleanStepTimeoutMs + burnInMs(step === undefined ? [] : [step], devicePlan.length);
    }
    return eraseTimeoutMs(diskSpeeds, plansOfStep(devicePlan, name), cleanStepTimeoutMs);
  },
};

/** Reads erased devices again after a power cycle; it writes nothing. */
export const verifyErased: OperationStep = {
  ...runnerStep,
  complete: (pass, _run, step, result) => proveErased(pass, step, result.evidence),
  leftMs: (pass, run) =>
    readTimeoutMs(
      pass.record.diskSpeeds,
      plansToProve(pass, run),
      pass.snapshot.timing.cleanStepTimeoutMs,
    ),
};

/** During the write, the disk has no complete image. */
export const writeImage: OperationStep = {
  kind: 'operation',
  inBand: true,
  operation: runnerStep.operation,
  timeoutMs: (timing) => timing.imageTimeoutMs,
  begin: beginWriteOver,
  complete: (pass, run) => {
    noteDeployed(pass, run);
    return undefined;
  },
};

function runStep(
  pass: PassView,
  run: RunView,
  step: StepView,
  { checkOf, lastProgress }: OperationOptions,
): agent.RunStep {
  const checked = checkOf?.kind.case === 'runStep' ? checkOf.kind.value : undefined;
  const image = imageOf(pass, step);
  const id = operationId(pass, run, run.currentStep, step.attempt);
  return create(agent.RunStepSchema, {
    ...orderOf(step, checked === undefined ? modeOf(step) : agent.StepMode.CHECK),
    arguments: {
      ...step.arguments,
      ...checked?.arguments,
      ...(lastProgress === undefined || lastProgress === '' ? {} : { lastProgress }),
    },
    bootOperationId: bootOperationId(pass, run),
    runnerSession: runnerSession(pass, run),
    devices: devicesOf(pass, run, step),
    challengeSeed: checked?.challengeSeed ?? challengeSeed(pass.snapshot.incarnation, id),
    allowUnprovenIdentity: pass.spec.cleaning?.allowUnprovenIdentity ?? false,
    allowDiskless: pass.spec.cleaning?.allowDiskless ?? false,
    ...(step.handOff ? { handOff: true } : {}),
    ...(image === undefined ? {} : { image }),
    ...deploymentFor(pass, run, step),
    secrets: secretUses(step.arguments, credentialVersions(pass)),
    ...witnesses(pass),
  });
}

/** Guard 0 in the runner: what the machine itself must report. */
function witnesses(pass: PassView) {
  const expectedIdentity = machineIdentity(pass);
  return expectedIdentity === undefined ? {} : { expectedIdentity };
}

/** A second reading only checks. */
function modeOf({ name }: StepView): agent.StepMode {
  return name === verifyErasedStep ? agent.StepMode.CHECK : agent.StepMode.RUN;
}

/** The devices that a step may touch, and how; empty for a step without devices. */
function devicesOf(pass: PassView, run: RunView, { name }: StepView): agent.DevicePlan[] {
  if (name === verifyErasedStep) return plansToProve(pass, run);
  if (name === writeImageStep) return devicesSeen(pass, run);
  return isErasure(name) || name === burnInDiskStep
    ? plansOfStep(pass.record.devicePlan, name)
    : [];
}

/**
 * The runner of the present boot. An agent whose disk was restored to an older copy does not know
 * which runner has had the boot, nor what that one has begun: it must not pass the work to the
 * next.
 */
function runnerSession(pass: PassView, run: RunView): RunnerSessionId {
  const { runner } = pass.record;
  return runner?.bootOperationId === bootOperationId(pass, run) ? runner.runnerSession : '';
}

/** An image goes only onto devices that the inspection of its run has seen; names are enough. */
function devicesSeen(pass: PassView, run: RunView): agent.DevicePlan[] {
  const { devices = [] } = (hasInspected(run) ? inventoryNow(pass) : undefined) ?? {};
  return devices.map(({ serial, wwn }) => {
    return create(agent.DevicePlanSchema, { device: { serial, wwn } });
  });
}
