/** Arguments of the programs that developers start by npm scripts. */
import { type ParseArgsConfig, parseArgs } from 'node:util';

type Parsed<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>;

/** Exit code of a program that does not understand its arguments. */
const misunderstood = 2;

/**
 * The arguments of this process. The program ends where it does not understand them, and names the
 * options that it has.
 */
export function programArguments<const T extends ParseArgsConfig>(config: T): Parsed<T> {
  const read = readArguments(config);
  if (read.kind === 'value') return read.value;
  console.error(read.problem);
  return process.exit(misunderstood);
}

/** Never throws where the arguments are wrong. */
export function readArguments<const T extends ParseArgsConfig>(config: T) {
  try {
    return { kind: 'value', value: parseArgs(config) } as const;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const names = Object.keys(config.options ?? {}).map((name) => `--${name}`);
    const problem = `${error.message}\nThe options are ${names.join(', ')}.`;
    return { kind: 'bad', problem } as const;
  }
}
