/** Help on a terminal: lines no wider than `helpWidth`. */
import { widthOf } from './text.ts';

/** Columns that every terminal has. */
export const helpWidth = 80;
/** A second column that begins later than this gets lines of its own. */
const secondColumnMax = 30;
const ownLineIndent = 8;

/** The text of a help page, its lines folded between words or the choices of "a|b". */
export function foldHelp(text: string): string {
  return text.split('\n').flatMap(foldLine).join('\n');
}

function foldLine(given: string): string[] {
  // A flag that is empty by default is just optional, which its brackets say.
  const line = given.replace(/ +\[default = ""\]$/, '');
  const row = /^( +(?:-\w +)?\S+(?: \S+)* {2,})(\S.*)$/.exec(line);
  const [, first, second] = row ?? [];
  const isNarrow = widthOf(line) <= helpWidth;
  if (isNarrow && widthOf(first ?? '') <= secondColumnMax) return [line];
  if (first === undefined || second === undefined) {
    const indent = line.length - line.trimStart().length;
    return fill(' '.repeat(indent), line.trim(), indent === 0 ? 0 : indent + 2);
  }
  // Stricli aligns the forms of a flag; the blanks before them are of no use in a folded line.
  const text = second.replaceAll(/ {2,}/g, ' ');
  if (widthOf(first) <= secondColumnMax) return fill(first, text, widthOf(first));
  return [first.trimEnd(), ...fill(' '.repeat(ownLineIndent), text, ownLineIndent)];
}

/** `start` and the words, the lines after the first indented. */
function fill(start: string, text: string, indent: number): string[] {
  const lines: string[] = [];
  let line = start;
  let isEmpty = true;
  for (const part of text.match(/ ?[^ |]+\|?/g) ?? []) {
    const [word, fits] = [part.trimStart(), widthOf(line + part) <= helpWidth];
    if (!isEmpty && !fits) {
      lines.push(line);
      line = ' '.repeat(indent) + word;
    } else {
      line += isEmpty ? word : part;
    }
    isEmpty = false;
  }
  return [...lines, line];
}
