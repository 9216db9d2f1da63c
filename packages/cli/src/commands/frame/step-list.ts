/** Lists of steps as people write them: on the command line, or in a file. */
import { errorText } from '@rackwright/platform';
import { parse } from 'yaml';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parsePair } from '../../flags.ts';

/** One step of a list; also a control step: hold, wait, powerOn, powerOff, reboot. */
export interface ListedStep {
  readonly step: string;
  readonly arguments: Record<string, string>;
}

export const stepListFlags = {
  step: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'STEP or STEP,NAME=VALUE…; may be repeated, runs in this order',
    placeholder: 'step',
  },
  steps: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'File with the list of steps (YAML or JSON); - for standard input',
    placeholder: 'file',
  },
} as const;

export interface StepListFlags {
  readonly step?: readonly string[];
  readonly steps?: string;
}

/** The list that the flags give; empty without any. Throws `UsageError`. */
export async function listedSteps(io: CommandIo, flags: StepListFlags): Promise<ListedStep[]> {
  const { step = [], steps } = flags;
  if (steps === undefined) return step.map(stepOfFlag);
  if (step.length > 0) throw new UsageError('give --step or --steps, not both');
  const text = await readText(io, steps);
  return stepsOfText(steps === '-' ? 'standard input' : steps, text);
}

function stepOfFlag(given: string): ListedStep {
  const [step = '', ...pairs] = given.split(',');
  return { step, arguments: Object.fromEntries(pairs.map((each) => parsePair('--step', each))) };
}

async function readText(io: CommandIo, path: string): Promise<string> {
  if (path === '-') {
    const input = await io.readInput();
    if (input === undefined) throw new UsageError('--steps - reads standard input; give a list');
    return input;
  }
  const bytes = await io.readFile(path);
  if (bytes === undefined) throw new UsageError(`--steps names ${path}, which does not exist`);
  return new TextDecoder().decode(bytes);
}

const form = 'a list of names, or of {step: NAME, arguments: {NAME: VALUE}}';

/** Exported for its tests. */
export function stepsOfText(source: string, text: string): ListedStep[] {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new UsageError(`${source} is neither YAML nor JSON: ${errorText(error)}`);
  }
  if (!Array.isArray(value) || value.length === 0) {
    throw new UsageError(`${source} must hold ${form}`);
  }
  return value.map((each, index) => stepOfValue(`${source}: step ${index + 1}`, each));
}

function stepOfValue(source: string, value: unknown): ListedStep {
  if (typeof value === 'string') return { step: value, arguments: {} };
  if (!isObject(value))
    throw new UsageError(`${source} must be a name or an object; it is ${form}`);
  const { step, arguments: given = {}, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new UsageError(`${source} has ${unknown}; it may have step and arguments`);
  }
  if (typeof step !== 'string') throw new UsageError(`${source} lacks the name of its step`);
  if (!isObject(given)) throw new UsageError(`${source}: arguments must be names with values`);
  const pairs = Object.entries(given).map(([name, one]) => [name, textOf(source, name, one)]);
  return { step, arguments: Object.fromEntries(pairs) };
}

function textOf(source: string, name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new UsageError(`${source}: ${name} must be a text, a number, true or false`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
