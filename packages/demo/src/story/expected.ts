/**
 * What a script expects a command to print. Pure.
 *
 * E1 A command whose output lacks one of its texts has failed, with any exit code.
 */

/** A command and what its output has to contain. */
export interface Expecting {
  readonly args: readonly string[];
  readonly texts: readonly string[];
}

const mark = 'expect';

/** Takes "COMMAND expect TEXT expect TEXT" apart; undefined when a text is missing. */
export function expectingOf(words: readonly string[]): Expecting | undefined {
  const first = words.indexOf(mark);
  if (first < 0) return { args: words, texts: [] };
  const tail = words.slice(first);
  const isPaired = tail.every((word, index) => (index % 2 === 0 ? word === mark : word !== ''));
  if (tail.length % 2 !== 0 || !isPaired) return undefined;
  return { args: words.slice(0, first), texts: tail.filter((_, index) => index % 2 === 1) };
}

/** The texts that the output lacks. Columns and lines of a table are as wide as they like. */
export function missingTexts(output: string, texts: readonly string[]): string[] {
  const printed = oneSpaced(output);
  return texts.filter((text) => !printed.includes(oneSpaced(text)));
}

function oneSpaced(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
