/** Images and secrets that steps need, as the fleet lets them have these now. */
import { type agent, commandStep, type Run, type RunStep } from '@rackwright/messages';
import { commandImageOf, missingSecret, reachProblem } from '../../../steps/index.ts';
import { refusalOfDeployment } from '../../deployment/deployment.ts';
import type { Pass } from '../../pass/pass.ts';

/** The image that a command comes in, for the agent to fetch; undefined: it comes in none. */
export function imageOf(pass: Pass, step: RunStep): agent.CommandImage | undefined {
  const found = commandImage(pass, step);
  return found?.kind === 'ok' ? found.image : undefined;
}

/** Why an image is not fetched, or a secret not given, as things stand now. */
export function refusalOfImage(pass: Pass, run: Run, step: RunStep): string | undefined {
  const deploys = refusalOfDeployment(pass, run, step);
  if (deploys !== undefined) return deploys;
  const found = commandImage(pass, step);
  if (found?.kind === 'refused') return found.problem;
  return (
    reachProblem(pass.context.fleet?.templates, { step: step.name, arguments: step.arguments }) ??
    missingSecret(step.arguments, credentialVersions(pass))
  );
}

function commandImage(pass: Pass, step: RunStep) {
  if (step.name !== commandStep) return undefined;
  const { templates, internalAddresses } = pass.context.fleet ?? {};
  return commandImageOf(step, templates, credentialVersions(pass), internalAddresses);
}

/** Of the credentials that the fleet names for templates and registries. */
export function credentialVersions({ context }: Pass): ReadonlyMap<string, bigint> {
  return context.registryCredentials ?? new Map<string, bigint>();
}
