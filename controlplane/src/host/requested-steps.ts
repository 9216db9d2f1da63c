/** Checks lists of steps that people write against what agent and runner can do. */
import { knownSteps } from './engine.ts';
import type { Turn } from './turn.ts';
import type { Refusal, RequestedStep } from './types.ts';

/** Why a list of steps cannot be run: names and arguments that no known step has. */
export function refusalOfSteps(turn: Turn, steps: readonly RequestedStep[]): Refusal | undefined {
  const known = knownSteps(turn);
  const fieldViolations = steps.flatMap((wanted, index) => {
    const step = known.find((candidate) => candidate.name === wanted.step);
    if (step === undefined) {
      const names = known.map((candidate) => candidate.name).join(', ');
      return [
        violation(`steps[${index}].step`, `${wanted.step} is no known step; known: ${names}`),
      ];
    }
    return Object.keys(wanted.arguments)
      .filter((name) => !(name in step.arguments))
      .map((name) => violation(`steps[${index}].arguments`, `${step.name} takes no ${name}`));
  });
  if (fieldViolations.length > 0) {
    return { code: 'invalidArgument', message: 'the list of steps is not valid', fieldViolations };
  }
  return undefined;
}

function violation(field: string, description: string) {
  return { field, description };
}
