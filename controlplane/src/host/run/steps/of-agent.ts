/** Steps that the rack's agent runs itself, and its orders for a deployment. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  applyVolumesStep,
  checkSettingsStep,
  type RunStep,
  resetBmcStep,
  updateFirmwareStep,
  writeImageStep,
} from '@rackwright/messages';
import { deploymentOf, proofLeftMs } from '../../deployment/deployment.ts';
import { queueTimeoutMs } from '../../deployment/image-queue.ts';
import { currentStep, type PassView } from '../../pass/pass.ts';
import type { RunView, StepView } from '../../pass/read-only.ts';
import { isDeployStepOfAgent } from '../../pass/step-names.ts';
import { bmcAccess, expectedIdentity } from './power.ts';
import { type OperationStep, operationTimeout } from './step-definition.ts';

/** A deployment step that the agent runs itself, without the BMC. */
export const deployStepOfAgent: OperationStep = {
  kind: 'operation',
  timeoutMs: (timing) => timing.imageTimeoutMs,
  operation: (pass, run, step) => ({
    case: 'runStep',
    value: create(agent.RunStepSchema, {
      ...orderOf(step),
      destructive: false,
      ...deploymentFor(pass, run, step),
    }),
  }),
  complete: () => undefined,
};

export const awaitImage: OperationStep = { ...deployStepOfAgent, leftMs: proofLeftMs };

/** A step that the rack's agent runs on the BMC, without a runner. */
export const outOfBandStep: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  leftMs: ({ snapshot }, run) => {
    return patienceMs[currentStep(run)?.name ?? ''] ?? operationTimeout(snapshot.timing);
  },
  operation: (pass, _run, step, { checkOf }) => ({
    case: 'runStep',
    value: create(agent.RunStepSchema, {
      ...orderOf(step, checkOf === undefined ? agent.StepMode.RUN : agent.StepMode.CHECK),
      arguments: { ...step.arguments },
      bmc: bmcAccess(pass),
      ...expectedIdentity(pass),
    }),
  }),
  complete: () => undefined,
};

/**
 * From its first order on the disks are different ones: no certificate, and no plan, applies to
 * them.
 */
export const volumesStep: OperationStep = {
  ...outOfBandStep,
  begin: ({ record }) => {
    record.certified = [];
    record.unproved = [];
    record.devicePlan = [];
  },
};

/** For steps that wait for a boot of the machine, or of the BMC; longer than the agent waits. */
const patienceMs: Readonly<Record<string, number>> = {
  [resetBmcStep]: 13 * 60_000,
  [checkSettingsStep]: 20 * 60_000,
  [updateFirmwareStep]: 120 * 60_000,
  [applyVolumesStep]: 75 * 60_000,
};

/** Steps that a BMC may still carry out long after their order. */
const orderedOnce: ReadonlySet<string> = new Set([updateFirmwareStep, applyVolumesStep]);

/** Whether only a person orders a step again: a check that does not find it done ends it. */
export function isOrderedOnce({ name, outOfBand }: Pick<RunStep, 'name' | 'outOfBand'>): boolean {
  return outOfBand && orderedOnce.has(name);
}

/** The common part of a step's orders. */
export function orderOf(
  { name, destructive, rerunClass }: StepView,
  mode: agent.StepMode = agent.StepMode.RUN,
) {
  return { step: name, mode, destructive, rerunClass };
}

/** The deployment for its steps; empty for any other step. */
export function deploymentFor(pass: PassView, run: RunView, step: StepView) {
  const { name } = step;
  if (name !== writeImageStep && !isDeployStepOfAgent(name)) return {};
  const found = deploymentOf(pass, run);
  if (found.kind === 'refused') return {};
  const { deployment } = found;
  const { timing } = pass.snapshot;
  if (queueTimeoutMs(step, timing) === 0) return { deployment };
  return { deployment, turnTimeout: durationFromMs(timing.imageTimeoutMs) };
}
