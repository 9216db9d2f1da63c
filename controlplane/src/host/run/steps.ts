/**
 * The order of each step of a run to the agent, its time limit, and what its completion must show.
 * A completion that does not show it is a failure, never a success (R8).
 */
import {
  applyVolumesStep,
  awaitImageStep,
  fetchImageStep,
  type RunStep,
  verifyErasedStep,
  webhookStep,
  writeImageStep,
} from '@rackwright/messages';
import { pauseEndsMs } from '../pass/pause.ts';
import { type EngineStep, engineSteps } from '../pass/step-names.ts';
import { runnerStep, verifyErased, writeImage } from './steps/in-runner.ts';
import { inspect, inspectAgain } from './steps/inspect.ts';
import { awaitImage, deployStepOfAgent, outOfBandStep, volumesStep } from './steps/of-agent.ts';
import {
  awaitRunner,
  bootImage,
  bootRescue,
  bootRunner,
  powerOff,
  powerOn,
  verifyAccess,
} from './steps/power.ts';
import type { CallStep, ConditionStep, StepDefinition } from './steps/step-definition.ts';

const forget: ConditionStep = {
  kind: 'condition',
  timeoutMs: () => undefined,
  waiting: { reason: 'agent', message: 'the agent has not yet dropped what it knows of the host' },
  begin: (pass) => {
    pass.record.forgetting = pass.snapshot.agentRegistered;
    if (pass.record.forgetting) pass.effects.push({ kind: 'forget' });
  },
  met: (pass) => !pass.record.forgetting,
};

/** Waits for a person, who resumes or skips (`step-on.ts`); never met automatically. */
const hold: ConditionStep = {
  kind: 'condition',
  timeoutMs: () => undefined,
  waiting: { reason: 'hold', message: 'the list of steps asks for a person here' },
  sees: (_pass, step) => step.arguments['reason'],
  needsNoAgent: true,
  met: () => false,
};

/** Stored as its start and its argument, so that it survives every restart. */
const wait: ConditionStep = {
  kind: 'condition',
  timeoutMs: () => undefined,
  waiting: { reason: 'wait', message: 'the list of steps asks for a pause here' },
  needsNoAgent: true,
  met: (pass, _run, step) => (pauseEndsMs(step) ?? 0) <= pass.snapshot.nowMs,
};

const webhook: CallStep = { kind: 'call', timeoutMs: (timing) => timing.webhookTimeoutMs };

const definitions: Readonly<Record<EngineStep, StepDefinition>> = {
  [engineSteps.verifyAccess]: verifyAccess,
  [engineSteps.off]: powerOff,
  [engineSteps.on]: powerOn,
  [engineSteps.bootRunner]: bootRunner,
  [engineSteps.bootRescue]: bootRescue,
  [engineSteps.bootImage]: bootImage,
  [engineSteps.awaitRunner]: awaitRunner,
  [engineSteps.inspect]: inspect,
  [engineSteps.inspectAgain]: inspectAgain,
  [fetchImageStep]: deployStepOfAgent,
  [writeImageStep]: writeImage,
  [awaitImageStep]: awaitImage,
  [engineSteps.forget]: forget,
  [engineSteps.hold]: hold,
  [engineSteps.wait]: wait,
  [webhookStep]: webhook,
};

/** The engine's own steps by name; every other step is one of the agent or of the runner. */
export function stepDefinition({ name, outOfBand }: RunStep): StepDefinition {
  if (isEngineStep(name)) return definitions[name];
  if (name === verifyErasedStep) return verifyErased;
  if (outOfBand && name === applyVolumesStep) return volumesStep;
  return outOfBand ? outOfBandStep : runnerStep;
}

export function isEngineStep(name: string): name is EngineStep {
  return Object.hasOwn(definitions, name);
}
