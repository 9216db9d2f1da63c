import { expect, test } from 'vitest';
import { readArguments } from './program-arguments.ts';

const options = { mib: { type: 'string' }, memory: { type: 'boolean' } } as const;

test('arguments that a program understands are read', () => {
  const read = readArguments({ options, args: ['--mib', '8'] });
  expect(read).toMatchObject({ kind: 'value', value: { values: { mib: '8' } } });
});

test.each([['--help'], ['--mib'], ['stray']])(
  'the argument %s, which a program does not understand, is named with its options',
  (...args) => {
    const read = readArguments({ options, args });
    if (read.kind !== 'bad') throw new Error('it was understood');
    expect(read.problem).toContain(args[0]);
    expect(read.problem).toMatch(/\nThe options are --mib, --memory\.$/);
  },
);
