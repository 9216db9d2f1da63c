/**
 * Where a password comes from: a file, a pipe, or a person at a terminal.
 *
 * Must not: show it.
 */
import { UsageError } from './failure.ts';
import type { World } from './world.ts';

/**
 * The password, without the line break that editors and echo put at its end. At a terminal every
 * one of `questions` has to be answered alike. Throws `UsageError`.
 */
export async function readPassword(
  world: World,
  file: string | undefined,
  questions: readonly string[],
): Promise<string> {
  if (file === undefined) {
    const input = await world.readInput();
    return input === undefined ? ask(world, questions) : withoutLineEnd(input);
  }
  const bytes = await world.readFile(file);
  if (bytes === undefined) throw new UsageError(`--password-file ${file} does not exist`);
  return withoutLineEnd(new TextDecoder().decode(bytes));
}

async function ask(world: World, questions: readonly string[]): Promise<string> {
  let password: string | undefined;
  for (const question of questions) {
    const answer = await world.askHidden(question);
    if (answer === undefined) {
      throw new UsageError('no password was given: type it, pipe it in, or give --password-file');
    }
    if (password !== undefined && answer !== password) {
      throw new UsageError('the two passwords differ; nothing was changed');
    }
    password = answer;
  }
  return password ?? '';
}

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '');
}
