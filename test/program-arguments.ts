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
  return read.kind === 'value' ? read.value : refuseArguments(read.problem);
}

/** A whole number above 0. The program ends where `text` is none; `name` says what it is of. */
export function wholeArgument(name: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  return refuseArguments(`${name} has to be a whole number from 1 on, not "${text}".`);
}

/**
 * The words after `serve`, with which a benchmark starts its own server in another process;
 * undefined without any word. The program ends at another word: it would measure for minutes what
 * nobody asked for.
 */
export function serveArguments(positionals: readonly string[]): readonly string[] | undefined {
  const [action, ...words] = positionals;
  if (action === undefined) return undefined;
  return action === 'serve' ? words : refuseArguments(`There is no argument "${action}".`);
}

function refuseArguments(problem: string): never {
  console.error(problem);
  return process.exit(misunderstood);
}

/** Never throws where the arguments are wrong. */
export function readArguments<const T extends ParseArgsConfig>(config: T) {
  try {
    return { kind: 'value', value: parseArgs(config) } as const;
  } catch (error) {
    if (!isMisunderstanding(error)) throw error;
    const names = Object.keys(config.options ?? {}).map((name) => `--${name}`);
    const takes =
      names.length > 0 ? `The options are ${names.join(', ')}.` : 'It takes no options.';
    return { kind: 'bad', problem: `${error.message}\n${takes}` } as const;
  }
}

/** Other errors are about the table of options: they are ours. */
function isMisunderstanding(error: unknown): error is Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('ERR_PARSE_ARGS_');
}
