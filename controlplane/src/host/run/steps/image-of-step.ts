/** Images and secrets that steps need, as the fleet now permits them. */
import { type agent, type CredentialName, commandStep } from '@rackwright/messages';
import { commandImageOf, missingSecret, reachProblem } from '../../../steps/index.ts';
import { refusalOfDeployment } from '../../deployment/deployment.ts';
import type { PassView } from '../../pass/pass.ts';
import type { RunView, StepView } from '../../pass/read-only.ts';

/** The image of a command, for the agent to fetch; undefined: it has none. */
export function imageOf(pass: PassView, step: StepView): agent.CommandImage | undefined {
  const found = commandImage(pass, step);
  return found?.kind === 'ok' ? found.image : undefined;
}

/** Why an image may not be fetched now, or a secret not be sent. */
export function refusalOfImage(pass: PassView, run: RunView, step: StepView): string | undefined {
  const deploys = refusalOfDeployment(pass, run, step);
  if (deploys !== undefined) return deploys;
  const found = commandImage(pass, step);
  if (found?.kind === 'refused') return found.problem;
  return (
    reachProblem(pass.snapshot.fleet?.templates, { step: step.name, arguments: step.arguments }) ??
    missingSecret(step.arguments, credentialVersions(pass))
  );
}

function commandImage(pass: PassView, step: StepView) {
  if (step.name !== commandStep) return undefined;
  const { templates, internalAddresses } = pass.snapshot.fleet ?? {};
  return commandImageOf(step, templates, credentialVersions(pass), internalAddresses);
}

/** The versions of the credentials that the fleet names for templates and registries. */
export function credentialVersions({ snapshot }: PassView): ReadonlyMap<CredentialName, bigint> {
  return snapshot.registryCredentials ?? new Map<CredentialName, bigint>();
}
