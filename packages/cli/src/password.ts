/**
 * Reads a password: from a file, a pipe, or a person at a terminal.
 *
 * Must not: show it.
 */

import type { CommandIo } from './command-io.ts';
import { UsageError } from './failure.ts';

/**
 * The password, without the line break that editors and echo put at its end. At a terminal every
 * one of `questions` has to be answered alike. Throws `UsageError`.
 */
export async function readPassword(
  io: CommandIo,
  file: string | undefined,
  questions: readonly string[],
): Promise<string> {
  if (file === undefined) {
    const input = await io.readInput();
    return input === undefined ? ask(io, questions) : withoutLineEnd(input);
  }
  const bytes = await io.readFile(file);
  if (bytes === undefined) throw new UsageError(`--password-file ${file} does not exist`);
  return withoutLineEnd(new TextDecoder().decode(bytes));
}

async function ask(io: CommandIo, questions: readonly string[]): Promise<string> {
  let password: string | undefined;
  for (const question of questions) {
    const answer = await io.askHidden(question);
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
