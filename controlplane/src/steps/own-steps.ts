/**
 * The site's own programs in automatic cleans, as the fleet names them: validation of the list, and
 * the resulting steps. Pure.
 *
 * Invariant: a program may do anything to the machine, whatever its description says, so each
 * counts as destructive. Its result is no evidence of anything.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  commandStep,
  type FleetSpec,
  FleetSpecSchema,
  type OwnCleanStep,
  ownPrefix,
  ownPriorityUsual,
  RerunClass,
} from '@rackwright/messages';
import {
  commandArgumentsMax,
  descriptionCharsMax,
  directoryProblem,
  environmentMax,
  environmentName,
  imageProblem,
  retriesMax,
  stepTimeoutSecondsMax,
} from '@rackwright/template';
import type { KnownStep } from './plan.ts';
import type { Policy } from './policy.ts';
import { reachProblem } from './reach.ts';

const priorityMax = 1_000;
const stepsMax = 16;
const bytesMax = 16 * 1024;
const name = /^[a-z][a-z0-9_]{0,39}$/;
const nameForm = 'must have 1 to 40 characters of a-z, 0-9 and "_", and begin with a letter';
const policies = ['', 'fail', 'continue', 'hold'];

/** The steps that the fleet adds to those of agents and runners. */
export function ownSteps(fleet: FleetSpec | undefined): readonly KnownStep[] {
  return (fleet?.ownCleanSteps ?? []).map((own) => ({
    source: 'fleet',
    own,
    description: create(agent.StepDescriptionSchema, {
      name: `${ownPrefix}${own.name}`,
      priority: own.priority ?? ownPriorityUsual,
      rerunClass: own.idempotent ? RerunClass.SAFE : RerunClass.NEVER_TWICE,
      destructive: true,
      abortable: true,
      description: own.description === '' ? `Runs ${own.image}.` : own.description,
    }),
  }));
}

/** The arguments of the runner's command for such a program, as for a command of a template. */
export function ownArguments(own: OwnCleanStep): Readonly<Record<string, string>> {
  const { image, directory, environment } = own;
  const list = own.arguments;
  return {
    image,
    ...(list.length === 0 ? {} : { arguments: JSON.stringify(list) }),
    ...(Object.keys(environment).length === 0 ? {} : { environment: JSON.stringify(environment) }),
    ...(directory === '' ? {} : { directory }),
  };
}

/** Every violation in the list, by fields below it; empty: it is valid. */
export function ownStepProblems(
  steps: readonly OwnCleanStep[],
  policy: Policy,
): { readonly field: string; readonly description: string }[] {
  if (steps.length > stepsMax) {
    return [{ field: '', description: `has ${steps.length}; at most ${stepsMax} are kept` }];
  }
  const message = create(FleetSpecSchema, { ownCleanSteps: [...steps] });
  const bytes = toBinary(FleetSpecSchema, message).length;
  if (bytes > bytesMax) {
    return [{ field: '', description: `has ${bytes} bytes; at most ${bytesMax} are kept` }];
  }
  const names = steps.map((step) => step.name);
  return steps.flatMap((step, index) => {
    const twice = names.indexOf(step.name) < index;
    const problems = [
      ...(twice ? [['name', 'names a step that is named before'] as const] : []),
      ...problemsOf(step, policy),
    ];
    return problems.map(([field, description]) => ({ field: `[${index}].${field}`, description }));
  });
}

type FieldProblem = readonly [field: string, description: string];

function problemsOf(step: OwnCleanStep, policy: Policy): readonly FieldProblem[] {
  const { image, directory, description, environment, priority = 0, retries } = step;
  const reach = { step: commandStep, arguments: { image } };
  const list = step.arguments;
  const found: readonly (readonly [field: string, description: string | undefined])[] = [
    ['name', name.test(step.name) ? undefined : nameForm],
    ['priority', tooMuch(priority, priorityMax)],
    ['image', imageProblem(image) ?? reachProblem(policy, reach)],
    ['arguments', tooMany(list.length, commandArgumentsMax)],
    ['arguments', list.some((each) => each.includes('\0')) ? 'holds a zero byte' : undefined],
    ['environment', tooMany(Object.keys(environment).length, environmentMax)],
    ['environment', environmentProblem(environment)],
    ['directory', directory === '' ? undefined : directoryProblem(directory)],
    ['timeout', timeoutProblem(step)],
    ['retries', tooMuch(retries, retriesMax)],
    ['on_failure', policyProblem(step.onFailure)],
    ['on_timeout', policyProblem(step.onTimeout)],
    ['description', tooLong(description)],
  ];
  return found.flatMap(([field, problem]) => (problem === undefined ? [] : [[field, problem]]));
}

function tooMuch(value: number, most: number): string | undefined {
  return value <= most ? undefined : `is ${value}; it must be from 0 to ${most}`;
}

function tooMany(count: number, most: number): string | undefined {
  return count <= most ? undefined : `has ${count} entries; at most ${most} are taken`;
}

function tooLong({ length }: string): string | undefined {
  if (length <= descriptionCharsMax) return undefined;
  return `has ${length} characters; at most ${descriptionCharsMax} are kept`;
}

function environmentProblem(environment: Readonly<Record<string, string>>): string | undefined {
  const wrong = Object.entries(environment).find(
    ([key, value]) => !environmentName.test(key) || value.includes('\0'),
  );
  if (wrong === undefined) return undefined;
  const form = 'letters, digits and "_", and begin neither with a digit nor with RACKWRIGHT_';
  return `${JSON.stringify(wrong[0])} is no variable: names have ${form}, values no zero byte`;
}

function timeoutProblem({ timeout }: OwnCleanStep): string | undefined {
  if (timeout === undefined) return undefined;
  const ms = durationMs(timeout);
  if (ms >= 1_000 && ms <= stepTimeoutSecondsMax * 1_000) return undefined;
  return `must be from 1 s to ${stepTimeoutSecondsMax / 3_600} h`;
}

function policyProblem(text: string): string | undefined {
  if (policies.includes(text)) return undefined;
  return `is ${JSON.stringify(text.slice(0, 40))}; it must be fail, continue or hold`;
}
