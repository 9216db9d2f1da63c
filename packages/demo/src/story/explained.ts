/**
 * Whether an explanation is sufficient, and the actions that it asks of a person. Pure.
 *
 * E1 The story types one of the printed lines, with the blanks filled in: the demo fails when an
 *    explanation no longer resolves the trouble.
 */
import type { Explanation } from '@rackwright/messages';

/** The missing part of a stuck host's explanation; undefined when nothing is missing. */
export function missingIn({
  blocker,
  causes,
  unblock,
}: Pick<Explanation, 'blocker' | 'causes' | 'unblock'>): string | undefined {
  const says = (text: string) => text.trim() !== '';
  const hasReason = says(blocker) || causes.some(({ text }) => says(text));
  const hasWayOut = unblock.some(says);
  if (hasReason && hasWayOut) return undefined;
  if (hasReason) return 'it does not say what to do';
  return hasWayOut ? 'it does not say why' : 'it says neither why nor what to do';
}

const toDoMark = /^\s*to do: (.+)$/;

/** The lines of the command's output with the actions. */
export function toDoLines(output: string): string[] {
  return output.split('\n').flatMap((line) => toDoMark.exec(line)?.[1] ?? []);
}

/**
 * The words of the command in such a line, without "rackwright", its placeholders (words in
 * capitals) replaced; undefined when there is no command or `known` lacks one of them.
 */
export function commandIn(
  line: string,
  known: Readonly<Record<string, string>> = {},
): readonly string[] | undefined {
  const command = /\brackwright (.+)$/.exec(line)?.[1]?.split(/[,;]/)[0];
  if (command === undefined) return undefined;
  const words = command.trim().split(/ +/);
  const filled = words.map((word) => {
    const [, placeholder = '', rest = ''] = /^([A-Z][A-Z0-9]+)(:.*)?$/.exec(word) ?? [];
    if (placeholder === '') return word;
    const value = known[placeholder];
    return value === undefined ? undefined : `${value}${rest}`;
  });
  return filled.every((word) => word !== undefined) ? filled : undefined;
}
