/**
 * Which steps a host can run, from what its runner and its rack's agent said last, and the cleaning
 * plan that follows. `ListCleanSteps` and the engine read the same two functions.
 */
import { type agent, type Host, ownPrefix } from '@rackwright/messages';
import {
  builtInSteps,
  type CleanPlan,
  cleanPlan,
  type KnownStep,
  ownSteps,
} from '../../steps/index.ts';
import { isDeployStepOfAgent } from '../pass/step-names.ts';
import type { HostContext } from '../pass/types.ts';
import { isEngineStep } from './steps.ts';

export type StepSources = Pick<HostContext, 'facts' | 'agentSteps' | 'fleet'>;

/** Steps of the runner that only templates name: a person's list gives them nothing to run. */
export const templateOnly = 'run.';

/** How a step of an agent or a runner is named: "interface.step". */
const stepName = /^[a-z]+\.[a-z][a-z0-9_]*$/;

/**
 * What the agent does itself comes before what the runner offers under the same name. Before any
 * runner has spoken stands what the one that we ship can. The engine's own names mean the engine's
 * steps, and those of the site's own programs these, whatever anybody says.
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

/** Those that go by a name which is theirs. */
export function offered(steps: readonly agent.StepDescription[]): agent.StepDescription[] {
  return steps.filter(({ name }) => {
    return stepName.test(name) && !isEngineStep(name) && !name.startsWith(ownPrefix);
  });
}

/** What an agent takes itself: on BMCs, under names of its own, and of deployments (R8). */
export function agentStepsOf({ steps }: Pick<agent.Hello, 'steps'>): agent.StepDescription[] {
  return [...offered(steps), ...steps.filter(({ name }) => isDeployStepOfAgent(name))];
}

/** The automatic plan of a host. */
export function planOf({ spec, labels }: Host, sources: StepSources): CleanPlan {
  return cleanPlan({
    known: knownSteps(sources).filter(({ description }) => {
      return !description.name.startsWith(templateOnly);
    }),
    policy: spec?.cleaning,
    pool: labels['pool'],
    fleet: sources.fleet,
  });
}
