/** The numeric arguments of a burn-in, by the step's own description of them. Pure. */

import { ArgumentType } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import { invalid, type Read, valid } from '@rackwright/platform';
import { unknownArguments } from '../steps/arguments.ts';
import type { Step } from '../steps/step.ts';

type ArgumentValues = agent.RunStep['arguments'];

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/**
 * Every argument of the step as a number: durations in seconds, and defaults of absent ones. For
 * the first bad one it says what would be right.
 */
export function readNumbers(
  { typedArguments = [] }: Step['description'],
  given: ArgumentValues,
): Read<Readonly<Record<string, number>>> {
  const names = typedArguments.map(({ name = '' }) => name);
  const unknown = unknownArguments(given, names);
  if (unknown !== undefined) return invalid(unknown);
  const numbers: Record<string, number> = {};
  for (const { name = '', type, defaultValue = '', minimum = 0n, maximum = 0n } of typedArguments) {
    const text = given[name] ?? defaultValue;
    const number = type === ArgumentType.DURATION ? secondsOf(text) : wholeOf(text);
    if (number === undefined || number < minimum || number > maximum) {
      const form = type === ArgumentType.DURATION ? 'a time as "90s", "5m" or "2h"' : 'a number';
      return invalid(`${name}: must be ${form} of ${minimum} to ${maximum}`);
    }
    numbers[name] = number;
  }
  return valid(numbers);
}

function secondsOf(text: string): number | undefined {
  const [, count = '', unit = ''] = /^(\d{1,9})([smh])$/.exec(text) ?? [];
  return count === '' ? undefined : Number(count) * (unitSeconds[unit] ?? 1);
}

function wholeOf(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
