/**
 * The effect of keys on a line that is not shown. Pure.
 *
 * S1 Nothing typed after the line's end is lost: it begins the next line.
 *
 * Must not: show or keep the input.
 */
import { stripVTControlCharacters } from 'node:util';

export type SecretLine =
  /** No Enter yet. */
  | { readonly kind: 'open'; readonly text: string }
  | { readonly kind: 'ended'; readonly text: string; readonly rest: string }
  /** Ctrl-C, or Ctrl-D on an empty line. */
  | { readonly kind: 'abandoned'; readonly by: 'interrupt' | 'end of input' };

const keys = {
  interrupt: '\u0003',
  endOfInput: '\u0004',
  eraseLine: '\u0015',
} as const;

/** The line after `typed`, in raw mode, is added to `before`. Arrows and the like do nothing. */
export function typeSecret(before: string, typed: string): SecretLine {
  let text = [...before];
  const characters = [...stripVTControlCharacters(typed)];
  for (const [index, character] of characters.entries()) {
    if (character === '\r' || character === '\n') {
      return { kind: 'ended', text: text.join(''), rest: characters.slice(index + 1).join('') };
    }
    if (character === keys.interrupt) return { kind: 'abandoned', by: 'interrupt' };
    if (character === keys.endOfInput && text.length === 0) {
      return { kind: 'abandoned', by: 'end of input' };
    }
    if (character === keys.eraseLine) text = [];
    else if (character === '\b' || character === '\u007f') text.pop();
    else if (character >= ' ') text.push(character);
  }
  return { kind: 'open', text: text.join('') };
}
