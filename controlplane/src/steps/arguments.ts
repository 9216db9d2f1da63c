/**
 * Arguments of steps: their descriptions, and the given values. Values travel as text and are
 * checked here, before anything is started. Pure.
 *
 * Must not: repeat the value of an unknown argument, because it may be a secret.
 */
import { create } from '@bufbuild/protobuf';
import {
  ArgumentType,
  type agent,
  type StepArgument,
  StepArgumentSchema,
} from '@rackwright/messages';

export interface ArgumentProblem {
  /** "arguments" or "arguments.NAME" */
  readonly field: string;
  readonly description: string;
}

type ArgumentValues = Readonly<Record<string, string>>;

/** The most arguments of one step, and their longest value in characters. */
const argumentsMax = 32;
const valueCharactersMax = 1_024;
/** How much of a wrong value is shown. */
const shownCharactersMax = 40;

/** The arguments of a step; names without a type are texts. */
export function describedArguments(step: agent.StepDescription): StepArgument[] {
  const typed = step.typedArguments;
  const plain = Object.entries(step.arguments)
    .filter(([name]) => !typed.some((each) => each.name === name))
    .map(([name, description]) =>
      create(StepArgumentSchema, { name, description, type: ArgumentType.STRING }),
    );
  return [...typed, ...plain];
}

/** It is required, because it has no default. */
export function isMandatory(argument: StepArgument): boolean {
  return argument.required && argument.defaultValue === '';
}

/** Every violation in a step's arguments; empty when it can run. */
export function argumentProblems(
  step: agent.StepDescription,
  given: ArgumentValues,
): ArgumentProblem[] {
  const known = describedArguments(step);
  const names = Object.keys(given);
  if (names.length > argumentsMax) {
    const description = `has ${names.length} values; at most ${argumentsMax} are taken`;
    return [{ field: 'arguments', description }];
  }
  const takes = known.length === 0 ? 'none' : known.map(({ name }) => name).join(', ');
  const unknown = names
    .filter((name) => !known.some((argument) => argument.name === name))
    .map((name) => ({
      field: 'arguments',
      description: `${step.name} takes no ${shown(name)}; it takes ${takes}`,
    }));
  const wrong = known.flatMap((argument) => {
    const description = problemOf(argument, given[argument.name]);
    return description === undefined ? [] : [{ field: fieldOf(argument), description }];
  });
  return [...unknown, ...wrong];
}

/** The arguments for a run: the given ones, and defaults for the rest. */
export function withDefaults(
  step: agent.StepDescription | undefined,
  given: ArgumentValues,
): ArgumentValues {
  if (step === undefined) return given;
  const defaults = describedArguments(step)
    .filter(({ defaultValue }) => defaultValue !== '')
    .map(({ name, defaultValue }) => [name, defaultValue] as const);
  return { ...Object.fromEntries(defaults), ...given };
}

function fieldOf({ name }: StepArgument): string {
  return `arguments.${name}`;
}

function problemOf(argument: StepArgument, value: string | undefined): string | undefined {
  if (value === undefined) {
    return isMandatory(argument) ? `is required: ${meaning(argument)}` : undefined;
  }
  if (value.length > valueCharactersMax) {
    return `has ${value.length} characters; at most ${valueCharactersMax} are taken`;
  }
  if (fits(argument, value)) return undefined;
  return `must be ${wanted(argument)}; "${shown(value)}" is not`;
}

function meaning(argument: StepArgument): string {
  return argument.description === '' ? wanted(argument) : argument.description;
}

function fits(argument: StepArgument, value: string): boolean {
  switch (argument.type) {
    case ArgumentType.INTEGER:
      return /^-?\d{1,15}$/.test(value) && isWithin(argument, BigInt(value));
    case ArgumentType.BOOLEAN:
      return value === 'true' || value === 'false';
    case ArgumentType.DURATION: {
      const seconds = secondsOf(value);
      return seconds !== undefined && isWithin(argument, seconds);
    }
    case ArgumentType.CHOICE:
      return argument.values.includes(value);
    case ArgumentType.STRING:
    case ArgumentType.UNSPECIFIED:
      return true;
    default:
      // R8: an unknown type never passes.
      return false;
  }
}

function isWithin({ minimum, maximum }: StepArgument, value: bigint): boolean {
  return (minimum === undefined || value >= minimum) && (maximum === undefined || value <= maximum);
}

const unitSeconds = { s: 1n, m: 60n, h: 3_600n } as const;

/** Seconds of "90s", "5m" or "2h"; undefined for anything else. */
export function secondsOf(text: string): bigint | undefined {
  const found = /^(\d{1,9})([smh])$/.exec(text);
  if (found?.[1] === undefined) return undefined;
  return BigInt(found[1]) * unitSeconds[found[2] as keyof typeof unitSeconds];
}

function wanted(argument: StepArgument): string {
  switch (argument.type) {
    case ArgumentType.INTEGER:
      return `a whole number${rangeOf(argument, '')}`;
    case ArgumentType.BOOLEAN:
      return '"true" or "false"';
    case ArgumentType.DURATION:
      return `a time as "90s", "5m" or "2h"${rangeOf(argument, ' s')}`;
    case ArgumentType.CHOICE:
      return `one of ${argument.values.join(', ')}`;
    case ArgumentType.STRING:
    case ArgumentType.UNSPECIFIED:
      return 'a text';
    default:
      return `of type ${Number(argument.type)}, which this version does not know`;
  }
}

/** " 1–86400", " of at least 1", "" */
function rangeOf({ minimum, maximum }: StepArgument, unit: string): string {
  if (minimum !== undefined && maximum !== undefined) return ` ${minimum}–${maximum}${unit}`;
  if (minimum !== undefined) return ` of at least ${minimum}${unit}`;
  return maximum === undefined ? '' : ` of at most ${maximum}${unit}`;
}

function shown(text: string): string {
  return text.length <= shownCharactersMax ? text : `${text.slice(0, shownCharactersMax)}…`;
}
