/**
 * Names of the engine's own steps, and queries about steps by their names. Any other name is a step
 * of the agent or of the runner: a mistyped name would be sent there.
 */
import { awaitImageStep, fetchImageStep, webhookStep, writeImageStep } from '@rackwright/messages';

export const engineSteps = {
  verifyAccess: 'bmc.verifyAccess',
  off: 'power.off',
  on: 'power.on',
  bootRunner: 'power.bootRunner',
  bootRescue: 'power.bootRescue',
  bootImage: 'power.bootImage',
  awaitRunner: 'runner.await',
  inspect: 'runner.inspect',
  inspectAgain: 'runner.inspectAgain',
  forget: 'host.forget',
  hold: 'hold',
  wait: 'wait',
} as const;

/** Deployment steps of the agent; it announces them in its Hello (R8). */
const ofAgent = [fetchImageStep, awaitImageStep] as const;

/** Every name that the engine has a definition for (`run/steps.ts`). */
export type EngineStep =
  | (typeof engineSteps)[keyof typeof engineSteps]
  | (typeof ofAgent)[number]
  | typeof writeImageStep
  | typeof webhookStep;

/** Whether each step with a definition boots the runner or ends it. */
const runnerMoves: Readonly<Record<EngineStep, boolean>> = {
  [engineSteps.off]: true,
  [engineSteps.on]: true,
  [engineSteps.bootRunner]: true,
  [engineSteps.bootRescue]: true,
  [engineSteps.bootImage]: true,
  [engineSteps.awaitRunner]: true,
  [engineSteps.verifyAccess]: false,
  [engineSteps.inspect]: false,
  [engineSteps.inspectAgain]: false,
  [engineSteps.forget]: false,
  [engineSteps.hold]: false,
  [engineSteps.wait]: false,
  [fetchImageStep]: false,
  [awaitImageStep]: false,
  [writeImageStep]: false,
  [webhookStep]: false,
};
const moves: ReadonlyMap<string, boolean> = new Map(Object.entries(runnerMoves));

/** Whether a step with this name boots the runner or ends it. */
export function movesRunnerByName(name: string): boolean {
  return moves.get(name) === true;
}

/** From any system on the host into the runner. */
export const intoRunner = [
  engineSteps.off,
  engineSteps.bootRunner,
  engineSteps.awaitRunner,
] as const;

/** Whether a step boots the host into the runner, for work or for rescue. */
export function isBootStep(name: string): boolean {
  return name === engineSteps.bootRunner || name === engineSteps.bootRescue;
}

/** Whether a step boots the host's image, from its disk or over the network. */
export function switchesOnImage(name: string): boolean {
  return name === engineSteps.on || name === engineSteps.bootImage;
}

export function switchesOn(name: string): boolean {
  return switchesOnImage(name) || isBootStep(name);
}

export function isDeployStepOfAgent(name: string): boolean {
  return ofAgent.some((each) => each === name);
}

/** Whether a step is of a template, which gives it a title. */
export function isOfTemplate({ title }: { readonly title: string }): boolean {
  return title !== '';
}
