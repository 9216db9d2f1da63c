/**
 * The table of attacks as it stands in this folder's README, and whether the tests that its rows
 * cite are there: by the path of a file and the title in its source, as `path: "title"`.
 */
import { codeOf } from '../tidy/code-text.ts';

export interface AttackRow {
  /** Of the document, from 1. */
  readonly line: number;
  readonly attacker: string;
  readonly attempt: string;
  readonly outcome: string;
  readonly tests: readonly Citation[];
}

export interface Citation {
  readonly path: string;
  readonly title: string;
}

/** Rows of tables of four columns; one without an attacker is of the attacker above. */
export function rowsOf(document: string): AttackRow[] {
  const rows: AttackRow[] = [];
  for (const [index, text] of document.split('\n').entries()) {
    const cells = cellsOf(text);
    if (cells === undefined || cells[0] === 'attacker' || /^-+$/.test(cells[0] ?? '')) continue;
    const [attacker = '', attempt = '', outcome = '', tests = ''] = cells;
    const of = attacker === '' ? (rows.at(-1)?.attacker ?? '') : attacker;
    rows.push({ line: index + 1, attacker: of, attempt, outcome, tests: citationsIn(tests) });
  }
  return rows;
}

function cellsOf(line: string): string[] | undefined {
  const inner = /^\|(.*)\|$/.exec(line.trim())?.[1];
  const cells = inner?.split(/(?<!\\)\|/).map((cell) => cell.trim());
  return cells?.length === 4 ? cells : undefined;
}

function citationsIn(cell: string): Citation[] {
  return [...cell.matchAll(/`([^`\s]+\.test\.ts): "([^`]+)"`/g)].map(
    ([, path = '', title = '']) => ({
      path,
      title,
    }),
  );
}

/** What is wrong with the rows: nothing cited, or something that is not there or does not run. */
export function problemsOf(
  rows: readonly AttackRow[],
  read: (path: string) => string | undefined,
): string[] {
  return rows.flatMap(({ line, attempt, outcome, tests }) => {
    const at = `line ${line}`;
    if (attempt === '' || outcome === '') return [`${at}: an empty cell`];
    if (tests.length === 0) return [`${at}: no test is cited`];
    return tests.flatMap(({ path, title }) => {
      const text = read(path);
      const why = text === undefined ? 'there is no such file' : whyNot(text, title);
      return why === undefined ? [] : [`${at}: ${path}: "${title}": ${why}`];
    });
  });
}

/** Undefined: the source has a test of that title, and nothing there keeps it from running. */
export function whyNot(source: string, title: string): string | undefined {
  const code = codeOf(source);
  const callees = places(source, title).flatMap((at) => calleeBefore(code, at) ?? []);
  const found = callees.filter((callee) => /^(test|it)\b/.test(callee));
  if (found.length === 0) return 'there is no such test';
  if (found.length > 1) return 'there are several of that title';
  const modifiers = (found[0] ?? '').split('.').slice(1);
  const stopped = modifiers.find((each) => !['each', 'for', 'concurrent'].includes(each));
  if (stopped !== undefined) return `it is marked ${stopped}`;
  const group = /\bdescribe\.(skip|todo|skipIf|runIf)\b/.exec(code)?.[0];
  return group === undefined ? undefined : `its file has a ${group}`;
}

/** Where the title stands as a whole text; its quotes may be of any kind. */
function places(source: string, title: string): number[] {
  return ["'", '"', '`'].flatMap((quote) => {
    const text = `${quote}${title.replaceAll(quote, `\\${quote}`)}${quote}`;
    const found: number[] = [];
    for (let at = source.indexOf(text); at >= 0; at = source.indexOf(text, at + 1)) found.push(at);
    return found;
  });
}

/** "test.each" of `test.each<T>([…])(` that stands before `at`; undefined when no call does. */
function calleeBefore(code: string, at: number): string | undefined {
  let rest = code.slice(0, at).trimEnd();
  if (!rest.endsWith('(')) return undefined;
  rest = rest.slice(0, -1).trimEnd();
  for (const [open, close] of [
    ['(', ')'],
    ['<', '>'],
  ] as const) {
    if (rest.endsWith(close)) rest = withoutGroup(rest, open, close).trimEnd();
  }
  return /[\w.]+$/.exec(rest)?.[0];
}

/** The text before the bracket that the last one closes. Arrows are no brackets. */
function withoutGroup(text: string, open: string, close: string): string {
  let depth = 0;
  for (let at = text.length - 1; at >= 0; at -= 1) {
    if (text[at] === close && text[at - 1] !== '=') depth += 1;
    if (text[at] === open) depth -= 1;
    if (depth === 0) return text.slice(0, at);
  }
  return '';
}
