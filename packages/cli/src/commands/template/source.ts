/** The text of a template: from a file or standard input, and its problems. */
import { ApiFailure, counted, type FieldViolation, parseSourceProblem } from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { clean } from '../../output/text.ts';

/** Stands for standard input. */
const standardInput = '-';

/** The whole text. Throws `UsageError` when there is none. */
export async function readSource(io: CommandIo, path: string): Promise<string> {
  if (path === standardInput) {
    const input = await io.readInput();
    if (input !== undefined) return input;
    throw new UsageError('- means standard input; pipe the template in, or name a file');
  }
  const contents = await io.readFile(path);
  if (contents === undefined) throw new UsageError(`there is no file ${path}`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(contents);
  } catch (cause) {
    throw new UsageError(`${path} is no UTF-8 text`, { cause });
  }
}

/** Runs a call on a template; problems of its source are printed as "file:line:column: message". */
export async function locatingProblems<T>(
  io: CommandIo,
  path: string,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.error.kind !== 'invalidArgument') throw error;
    const { violations } = error.error;
    const file = path === standardInput ? '<stdin>' : path;
    const lines = violations.flatMap((violation) => lineOf(file, violation) ?? []);
    for (const line of lines) io.err.write(`${line}\n`);
    const others = violations.filter((violation) => lineOf(file, violation) === undefined);
    if (others.length > 0) throw new ApiFailure({ ...error.error, violations: others }, error);
    const count = counted(lines.length, 'problem');
    throw new UsageError(`${file} has ${count}`, { cause: error });
  }
}

/** "clock.yaml:3:5: …"; undefined for a problem of something else. */
function lineOf(file: string, { field, description }: FieldViolation): string | undefined {
  const problem = field === 'template.source' ? parseSourceProblem(description) : undefined;
  if (problem === undefined) return undefined;
  const { line, column, message } = problem;
  return `${clean(file)}:${line}:${column}: ${clean(message)}`;
}
