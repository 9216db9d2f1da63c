/** Text for people, broken at spaces. */

/**
 * Lines of at most `columns` columns; every one begins with `indent`. Line breaks are kept, and so
 * are blanks within a line: a table that fits stays a table.
 */
export function wrap(text: string, columns: number, indent = '  '): string {
  return text
    .split('\n')
    .flatMap((line) => wrapLine(line.trimEnd(), Math.max(columns, 40), indent))
    .join('\n');
}

/** A line that is indented by itself goes on with that indentation. */
function wrapLine(line: string, columns: number, indent: string): string[] {
  const own = /^ */.exec(line)?.[0] ?? '';
  const start = `${indent}${own}`;
  const lines: string[] = [];
  let current = start;
  // Each with the blanks before it, which are dropped only where the line is broken.
  for (const [piece, blanks = '', word = ''] of line.trimStart().matchAll(/( *)([^ ]+)/g)) {
    if (current !== start && current.length + piece.length > columns) {
      lines.push(current);
      current = start;
    }
    current += current === start ? word : `${blanks}${word}`;
  }
  return [...lines, current.trimEnd()];
}

const timeColumns = 9;

/** A text beside its time, its further lines below the first. */
export function timed(time: string, text: string, columns: number): string {
  const indent = ' '.repeat(timeColumns);
  return `${time}  ${wrap(text, columns, indent).slice(timeColumns)}`;
}
