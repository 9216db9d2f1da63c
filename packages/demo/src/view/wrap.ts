/** Text for people, broken at spaces. */

/** Lines of at most `columns` columns; every one begins with `indent`. Line breaks are kept. */
export function wrap(text: string, columns: number, indent = '  '): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, Math.max(columns, 40), indent))
    .join('\n');
}

/** A line that is indented by itself goes on with that indentation. */
function wrapLine(line: string, columns: number, indent: string): string {
  const own = /^ */.exec(line)?.[0] ?? '';
  const lines: string[] = [];
  let current = `${indent}${own}`;
  let isEmpty = true;
  for (const word of line.trim().split(/ +/)) {
    if (!isEmpty && current.length + 1 + word.length > columns) {
      lines.push(current);
      current = `${indent}${own}`;
      isEmpty = true;
    }
    current += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  lines.push(current.trimEnd());
  return lines.join('\n');
}

const timeColumns = 9;

/** A text beside the time at which it is said, its further lines below the first. */
export function timed(time: string, text: string, columns: number): string {
  const indent = ' '.repeat(timeColumns);
  return `${time}  ${wrap(text, columns, indent).slice(timeColumns)}`;
}
