import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { readArguments, serveArguments, wholeArgument } from './program-arguments.ts';

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

test('a program without options says so', () => {
  const read = readArguments({ options: {}, args: ['--rounds'], allowPositionals: true });
  if (read.kind !== 'bad') throw new Error('it was understood');
  expect(read.problem).toMatch(/--rounds[^]*\nIt takes no options\.$/);
});

test('a wrong table of options is no wrong argument', () => {
  const wrong = { mib: { type: 'string', short: 'too long' } } as const;
  expect(() => readArguments({ options: wrong, args: [] })).toThrow(TypeError);
});

test('a benchmark serves at the word serve alone, and measures without a word', () => {
  expect(serveArguments([])).toBe(undefined);
  expect(serveArguments(['serve', 'folder', '69'])).toEqual(['folder', '69']);
  expect(problemOf(() => serveArguments(['stray']))).toBe('There is no argument "stray".');
});

test('a number of a benchmark is whole and above 0', () => {
  expect(wholeArgument('rounds', '30')).toBe(30);
  for (const text of ['x', '0', '1.5', '-1', '1e3', '']) {
    const problem = problemOf(() => wholeArgument('rounds', text));
    expect(problem).toBe(`rounds has to be a whole number from 1 on, not "${text}".`);
  }
});

/** What is written before the process ends with the code of a misunderstanding. */
function problemOf(read: () => unknown): unknown {
  const exit = vi.spyOn(process, 'exit').mockImplementation((code) => {
    throw new Error(`exit ${code}`);
  });
  const write = vi.spyOn(console, 'error').mockImplementation(() => {});
  try {
    expect(read).toThrow('exit 2');
    return write.mock.lastCall?.[0];
  } finally {
    exit.mockRestore();
    write.mockRestore();
  }
}

test.each([
  ['peers.ts', '--arm'],
  ['bench/erase/main.ts', '--rounds'],
  ['bench/store/main.ts', 'stray'],
  // Nothing would be measured, and no floor be missed.
  ['bench/http/main.ts', '--rounds', '0'],
  ['bench/scale/main.ts', '--hosts', '1000,0'],
  ['bench/tftp/main.ts', '--rounds', 'abc'],
])(
  'the program %s refuses %s before it begins',
  (program, argument, ...values) => {
    // Without PATH it finds nothing to install where it does not refuse.
    const done = spawnSync(
      process.execPath,
      [join(import.meta.dirname, program), argument, ...values],
      {
        encoding: 'utf8',
        env: { PATH: '' },
        timeout: 50_000,
        killSignal: 'SIGKILL',
      },
    );
    expect(done.stderr).toContain(argument);
    expect(done.stdout).toBe('');
    expect(done.status).toBe(2);
  },
  60_000,
);
