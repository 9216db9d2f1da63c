/**
 * The steps of each kind of run, in their order, before any has begun. Pure.
 *
 * A service boots the runner only for a step that needs it, and leaves a host in use as it was: on,
 * from its disk. Every other host that was booted into the runner is off at the end.
 */
import {
  awaitImageStep,
  fetchImageStep,
  HostState,
  RunKind,
  writeImageStep,
} from '@rackwright/messages';
import type { PassView } from '../pass/pass.ts';
import { engineSteps, intoRunner } from '../pass/step-names.ts';
import type { RequestedStep } from '../pass/types.ts';
import { knownSteps } from './known-steps.ts';
import { cleanSteps, named, needsRunner, renderBody } from './render.ts';

type DeployedRecord = Pick<PassView['record'], 'image' | 'deploy'>;

/** All steps of a run; `requested` are listed steps; undefined: automatic. */
export function stepsOfRun(
  pass: PassView,
  kind: RunKind,
  requested: readonly RequestedStep[] | undefined,
): RequestedStep[] {
  const variable = requested ?? [];
  switch (kind) {
    case RunKind.VERIFY:
    case RunKind.ADOPT:
      return named(engineSteps.verifyAccess);
    case RunKind.INSPECT:
      return named(...intoRunner, engineSteps.inspect, engineSteps.off);
    case RunKind.CLEAN:
      return cleanSteps(pass, requested);
    case RunKind.PROVISION:
    case RunKind.REIMAGE:
      return deploySteps(pass.record);
    case RunKind.SERVICE:
      return serviceSteps(pass, variable);
    case RunKind.RELEASE:
      return named(engineSteps.off);
    case RunKind.RESCUE:
      return named(engineSteps.off, engineSteps.bootRescue, engineSteps.awaitRunner);
    case RunKind.DELETE:
      return [...variable, ...named(engineSteps.forget)];
    default:
      return [...variable];
  }
}

/**
 * The image is in the rack before the host is switched off. The host counts as in use once it has
 * proved that it runs the image.
 */
export function deploySteps({ image, deploy }: DeployedRecord): RequestedStep[] {
  const fetches = { step: fetchImageStep, arguments: { image } };
  if (deploy?.netboot === true) {
    return [fetches, ...named(engineSteps.off, engineSteps.bootImage, awaitImageStep)];
  }
  return [
    fetches,
    ...named(...intoRunner, engineSteps.inspect),
    { step: writeImageStep, arguments: { image } },
    ...named(engineSteps.off, engineSteps.on, awaitImageStep),
  ];
}

function serviceSteps(pass: PassView, listed: readonly RequestedStep[]): RequestedStep[] {
  const known = knownSteps(pass.snapshot);
  const body = renderBody(RunKind.SERVICE, listed, known);
  if (!listed.some(({ step }) => needsRunner(step, known))) return body;
  return [
    ...named(...intoRunner),
    ...body,
    ...named(engineSteps.off, ...(isOnInUse(pass) ? [engineSteps.on] : [])),
  ];
}

/** A provisioned host whose power was never observed counts as running. */
function isOnInUse({ status }: PassView): boolean {
  return status.state === HostState.PROVISIONED && status.poweredOn !== false;
}
