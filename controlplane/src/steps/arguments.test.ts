import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { ArgumentType, agent, type StepArgumentSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { argumentProblems, withDefaults } from './arguments.ts';
import { controlSteps } from './controls.ts';

const { INTEGER, BOOLEAN, DURATION, CHOICE, STRING } = ArgumentType;

type Argument = MessageInitShape<typeof StepArgumentSchema>;

function stepWith(...typedArguments: Argument[]): agent.StepDescription {
  return create(agent.StepDescriptionSchema, { name: 'vendor.tune', typedArguments });
}

const count = { name: 'count', type: INTEGER, minimum: 1n, maximum: 9n };

test.each<[string, Argument, string, string | undefined]>([
  ['a whole number', count, '9', undefined],
  ['a number above the range', count, '10', 'must be a whole number 1–9; "10" is not'],
  ['a fraction', count, '1.5', 'must be a whole number 1–9; "1.5" is not'],
  ['nothing at all', count, '', 'must be a whole number 1–9; "" is not'],
  ['a number without limits', { name: 'n', type: INTEGER }, '-7', undefined],
  ['a word for a number', { name: 'n', type: INTEGER, minimum: 3n }, 'x', '… of at least 3; …'],
  ['true', { name: 'b', type: BOOLEAN }, 'true', undefined],
  ['yes', { name: 'b', type: BOOLEAN }, 'yes', 'must be "true" or "false"; "yes" is not'],
  ['minutes', { name: 'd', type: DURATION, maximum: 300n }, '5m', undefined],
  ['too many hours', { name: 'd', type: DURATION, maximum: 300n }, '2h', '… of at most 300 s; …'],
  ['a bare number of time', { name: 'd', type: DURATION }, '90', 'must be a time as "90s", …'],
  ['one of the choices', { name: 'c', type: CHOICE, values: ['low', 'high'] }, 'low', undefined],
  ['none of them', { name: 'c', type: CHOICE, values: ['low'] }, 'mid', 'must be one of low; …'],
  ['any text', { name: 't', type: STRING }, 'a=b', undefined],
  ['a type of a later version', { name: 't', type: 99 as ArgumentType }, 'x', '… type 99, …'],
])('%s is taken or refused with its reason', (_, argument, value, reason) => {
  const problems = argumentProblems(stepWith(argument), { [argument.name ?? '']: value });
  if (reason === undefined) return expect(problems).toEqual([]);
  expect(problems.map(({ field }) => field)).toEqual([`arguments.${argument.name}`]);
  for (const part of reason.split('…')) expect(problems[0]?.description).toContain(part.trim());
});

test('a missing required argument is named with its meaning, unless it has a default', () => {
  const needs = stepWith({ name: 'level', required: true, description: 'how loud' });
  expect(argumentProblems(needs, {})).toEqual([
    { field: 'arguments.level', description: 'is required: how loud' },
  ]);
  const has = stepWith({ name: 'level', required: true, defaultValue: 'low' });
  expect(argumentProblems(has, {})).toEqual([]);
  expect(withDefaults(has, {})).toEqual({ level: 'low' });
  expect(withDefaults(has, { level: 'high' })).toEqual({ level: 'high' });
});

test('an argument that no step takes is refused, and its value is not repeated', () => {
  const [problem] = argumentProblems(stepWith(count), { password: 'hunter2' });
  expect(problem).toEqual({
    field: 'arguments',
    description: 'vendor.tune takes no password; it takes count',
  });
});

test('arguments without types are texts', () => {
  const plain = create(agent.StepDescriptionSchema, {
    name: 'vendor.old',
    arguments: { mode: 'which way' },
  });
  expect(argumentProblems(plain, { mode: 'any' })).toEqual([]);
  expect(argumentProblems(plain, { mood: 'any' })).toHaveLength(1);
});

test('values and their number are bounded', () => {
  const long = argumentProblems(stepWith({ name: 't' }), { t: 'x'.repeat(1_025) });
  expect(long[0]?.description).toContain('at most 1024');
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`a${index}`, '']));
  expect(argumentProblems(stepWith(), many)[0]?.description).toContain('at most 32');
});

test('a pause takes whole seconds, up to a day', () => {
  const wait = controlSteps.find(({ name }) => name === 'wait') ?? stepWith();
  expect(argumentProblems(wait, { seconds: 'abc' })).toEqual([
    {
      field: 'arguments.seconds',
      description: 'must be a whole number 1–86400; "abc" is not',
    },
  ]);
  expect(argumentProblems(wait, {})[0]?.description).toContain('is required');
});
