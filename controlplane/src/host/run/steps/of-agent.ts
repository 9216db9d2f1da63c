/** Steps that the rack's agent takes itself, and what it is told of a deployment. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  applyVolumesStep,
  checkSettingsStep,
  type Run,
  type RunStep,
  resetBmcStep,
  updateFirmwareStep,
  writeImageStep,
} from '@rackwright/messages';
import { deploymentOf, proofLeftMs } from '../../deployment/deployment.ts';
import { queueTimeoutMs } from '../../deployment/image-turn.ts';
import { currentStep, type Pass } from '../../pass/pass.ts';
import { isDeployStepOfAgent } from '../../pass/step-names.ts';
import { bmcAccess, expectedIdentity } from './power.ts';
import { type OperationStep, operationTimeout } from './step-definition.ts';

/** A step of a deployment that the agent takes by itself; nothing is asked of the BMC. */
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

/** A step that the rack's agent runs itself, on the BMC; no runner takes part. */
export const outOfBandStep: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  leftMs: ({ context }, run) => {
    return patienceMs[currentStep(run)?.name ?? ''] ?? operationTimeout(context.timing);
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

/** From its first order on the disks are others: no certificate, and no plan, is of them. */
export const volumesStep: OperationStep = {
  ...outOfBandStep,
  begin: ({ record }) => {
    record.certified = [];
    record.unproved = [];
    record.devicePlan = [];
  },
};

/** For what waits for a boot of the machine, or of the BMC; longer than the agent waits. */
const patienceMs: Readonly<Record<string, number>> = {
  [resetBmcStep]: 13 * 60_000,
  [checkSettingsStep]: 20 * 60_000,
  [updateFirmwareStep]: 120 * 60_000,
  [applyVolumesStep]: 75 * 60_000,
};

/** Steps that a BMC may still carry out long after whoever ordered them is gone. */
const orderedOnce: ReadonlySet<string> = new Set([updateFirmwareStep, applyVolumesStep]);

/** Whether only a person orders a step again: a check that does not find it done ends it. */
export function isOrderedOnce({ name, outOfBand }: Pick<RunStep, 'name' | 'outOfBand'>): boolean {
  return outOfBand && orderedOnce.has(name);
}

/** What every order of a step says of it. */
export function orderOf(
  { name, destructive, rerunClass }: RunStep,
  mode: agent.StepMode = agent.StepMode.RUN,
) {
  return { step: name, mode, destructive, rerunClass };
}

/** What a step of a deployment is told of it; nothing for any other. */
export function deploymentFor(pass: Pass, run: Run, step: RunStep) {
  const { name } = step;
  if (name !== writeImageStep && !isDeployStepOfAgent(name)) return {};
  const found = deploymentOf(pass, run);
  if (found.kind === 'refused') return {};
  const { deployment } = found;
  const { timing } = pass.context;
  if (queueTimeoutMs(step, timing) === 0) return { deployment };
  return { deployment, turnTimeout: durationFromMs(timing.imageTimeoutMs) };
}
