/**
 * TypeScript with comments and the contents of texts blanked out, so that checks by pattern see
 * code only. Line breaks stay: line numbers are those of the file.
 */

/** Characters after which a slash begins a regular expression rather than a division. */
const beforeRegex = '(,=:[!&|?{};+-*%~^<>\n';
/** Words after which a slash begins a regular expression. */
const wordBeforeRegex = /\b(return|typeof|case|in|of|do|else|void|delete|throw|await|yield)$/;

interface Cursor {
  readonly text: string;
  at: number;
  out: string;
  /** Where each comment begins and ends. */
  readonly comments: (readonly [from: number, to: number])[];
}

type Scanned = Readonly<Pick<Cursor, 'out' | 'comments'>>;

/** Many checks read the same files. */
const known = new Map<string, Scanned>();

/** Blanks comments, text contents and regular expressions; templates keep their `${…}` code. */
export function codeOf(text: string): string {
  return scanned(text).out;
}

/** Comments with only blanks and one line break between them. */
export interface CommentBlock {
  /** Numbers of its lines; the first line of a file is 1. */
  readonly first: number;
  readonly last: number;
  readonly text: string;
}

/** The comments of a text, in order; consecutive ones are one block. */
export function commentBlocksOf(text: string): readonly CommentBlock[] {
  const blocks: (readonly [from: number, to: number])[] = [];
  for (const [from, to] of scanned(text).comments) {
    const before = blocks.at(-1);
    const isNext = before !== undefined && /^[ \t]*\n?[ \t]*$/.test(text.slice(before[1], from));
    if (isNext) blocks.pop();
    blocks.push([isNext ? before[0] : from, to]);
  }
  const lineAt = (at: number) => text.slice(0, at).split('\n').length;
  return blocks.map(([from, to]) => {
    return { first: lineAt(from), last: lineAt(to), text: text.slice(from, to) };
  });
}

function scanned(text: string): Scanned {
  const before = known.get(text);
  if (before !== undefined) return before;
  const cursor: Cursor = { text, at: 0, out: '', comments: [] };
  scan(cursor, false);
  known.set(text, cursor);
  return cursor;
}

/** Runs to the end, or, inside a template's `${`, to the brace that closes it. */
function scan(cursor: Cursor, inTemplate: boolean): void {
  let depth = 0;
  while (cursor.at < cursor.text.length) {
    const char = cursor.text[cursor.at] ?? '';
    const pair = cursor.text.slice(cursor.at, cursor.at + 2);
    if (inTemplate && char === '}' && depth === 0) return;
    if (char === '{') depth += 1;
    if (char === '}') depth -= 1;
    if (pair === '//') blankComment(cursor, endOf(cursor, '\n'));
    else if (pair === '/*') blankComment(cursor, endOf(cursor, '*/') + 2);
    else if (char === "'" || char === '"') blankQuoted(cursor, char);
    else if (char === '`') blankTemplate(cursor);
    else if (char === '/' && startsRegex(cursor.out)) blankRegex(cursor);
    else keep(cursor);
  }
}

function keep(cursor: Cursor): void {
  cursor.out += cursor.text[cursor.at] ?? '';
  cursor.at += 1;
}

function endOf(cursor: Cursor, mark: string): number {
  const found = cursor.text.indexOf(mark, cursor.at);
  return found === -1 ? cursor.text.length : found;
}

/** Replaces everything up to `end` by spaces, keeping line breaks. */
function blankTo(cursor: Cursor, end: number): void {
  cursor.out += cursor.text.slice(cursor.at, end).replace(/[^\n]/g, ' ');
  cursor.at = Math.min(end, cursor.text.length);
}

function blankComment(cursor: Cursor, end: number): void {
  cursor.comments.push([cursor.at, end]);
  blankTo(cursor, end);
}

function blankQuoted(cursor: Cursor, quote: string): void {
  keep(cursor);
  let end = cursor.at;
  while (end < cursor.text.length && cursor.text[end] !== quote && cursor.text[end] !== '\n') {
    end += cursor.text[end] === '\\' ? 2 : 1;
  }
  blankTo(cursor, end);
  if (cursor.text[cursor.at] === quote) keep(cursor);
}

function blankTemplate(cursor: Cursor): void {
  keep(cursor);
  while (cursor.at < cursor.text.length && cursor.text[cursor.at] !== '`') {
    if (cursor.text.startsWith('${', cursor.at)) {
      keep(cursor);
      keep(cursor);
      scan(cursor, true);
      keep(cursor);
    } else {
      blankTo(cursor, cursor.at + (cursor.text[cursor.at] === '\\' ? 2 : 1));
    }
  }
  keep(cursor);
}

function startsRegex(before: string): boolean {
  const trimmed = before.replace(/[ \t]+$/, '');
  if (trimmed === '') return true;
  return beforeRegex.includes(trimmed.at(-1) ?? '') || wordBeforeRegex.test(trimmed);
}

function blankRegex(cursor: Cursor): void {
  let end = cursor.at + 1;
  let inClass = false;
  while (end < cursor.text.length && cursor.text[end] !== '\n') {
    const char = cursor.text[end];
    if (char === '/' && !inClass) break;
    if (char === '[') inClass = true;
    if (char === ']') inClass = false;
    end += char === '\\' ? 2 : 1;
  }
  blankTo(cursor, end + 1);
}
