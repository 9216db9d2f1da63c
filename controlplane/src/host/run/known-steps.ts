/**
 * The steps that a host can run, from the latest lists of its runner and its rack's agent, and the
 * resulting cleaning plan. `ListCleanSteps` and the engine use the same two functions.
 */
import { type agent, type Host, isTemplateOnly, ownPrefix } from '@rackwright/messages';
import {
  builtInSteps,
  type CleanPlan,
  cleanPlan,
  type KnownStep,
  ownSteps,
} from '../../steps/index.ts';
import type { DeepReadonly } from '../pass/read-only.ts';
import { isDeployStepOfAgent } from '../pass/step-names.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { isEngineStep } from './steps.ts';

export type StepSources = Pick<HostSnapshot, 'facts' | 'agentSteps' | 'fleet'>;

/** The form of step names of an agent or a runner: "interface.step". */
const stepName = /^[a-z]+\.[a-z][a-z0-9_]*$/;

/**
 * Steps of the agent take precedence over the runner's steps of the same name. Before the first
 * runner the steps of our own runner count. Names of engine steps, and of the site's own programs,
 * always keep that meaning.
 */
export function knownSteps({ facts, agentSteps, fleet }: StepSources): readonly KnownStep[] {
  const ofAgent = offered(agentSteps ?? []);
  const reported = offered(facts.runnerSteps);
  const ofRunner = (reported.length > 0 ? reported : builtInSteps).filter(
    ({ name }) => !ofAgent.some((step) => step.name === name),
  );
  return [
    ...ofAgent.map((description) => ({ description, source: 'agent' as const })),
    ...ofRunner.map((description) => ({ description, source: 'runner' as const })),
    ...ownSteps(fleet),
  ];
}

/** The steps whose names do not belong to others. */
export function offered(steps: readonly agent.StepDescription[]): agent.StepDescription[] {
  return steps.filter(({ name }) => {
    return stepName.test(name) && !isEngineStep(name) && !name.startsWith(ownPrefix);
  });
}

/**
 * The steps that an agent runs itself: on BMCs, under names of its own, and of deployments (R8).
 */
export function agentStepsOf({ steps }: Pick<agent.Hello, 'steps'>): agent.StepDescription[] {
  return [...offered(steps), ...steps.filter(({ name }) => isDeployStepOfAgent(name))];
}

/** The automatic plan of a host. */
export function planOf({ spec, labels }: DeepReadonly<Host>, sources: StepSources): CleanPlan {
  return cleanPlan({
    known: knownSteps(sources).filter(({ description }) => !isTemplateOnly(description.name)),
    policy: spec?.cleaning,
    pool: labels['pool'],
    fleet: sources.fleet,
  });
}
