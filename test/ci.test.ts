/** The tables of `.ci/run`: a row that stands there twice costs minutes and finds nothing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const tableText = /<<'TABLE'\n(.*?)\nTABLE\n/gs;
const rowText = /^(?<name>[a-z-]+) +(?<seconds>\d+) +(?<end>pass|fail) +(?<command>\S.*)$/;

interface Row {
  readonly name: string;
  readonly seconds: number;
  /** What npm runs, and its arguments. */
  readonly command: string;
}

/** The rows of all tables in a script; throws at a line that is none. */
function rowsOf(script: string): Row[] {
  const lines = [...script.matchAll(tableText)].flatMap(([, table = '']) => table.split('\n'));
  return lines.map((line) => {
    const { name, seconds, command } = rowText.exec(line)?.groups ?? {};
    if (name === undefined || command === undefined) throw new Error(`no row: "${line}"`);
    return { name, seconds: Number(seconds), command: command.trim() };
  });
}

function repeated(args: readonly string[]): string[] {
  return args.filter((word, at) => args.indexOf(word) < at);
}

const rows = rowsOf(readFileSync(join(root, '.ci/run'), 'utf8'));

test('no name and no command of CI stands twice', () => {
  expect(rows.length).toBeGreaterThan(10);
  expect(repeated(rows.map(({ name }) => name))).toEqual([]);
  expect(repeated(rows.map(({ command }) => command))).toEqual([]);
});

test('every row of CI runs a command of the repository', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const unknown = rows.filter(({ command }) => scripts[command.split(' ')[0] ?? ''] === undefined);
  expect(unknown).toEqual([]);
});

test('rows are told apart by name and by command, and a line that is no row is refused', () => {
  const table = (text: string): string => `cat <<'TABLE'\n${text}\nTABLE\n`;
  const [a, b] = ['lab-a  900  pass  lab --a', 'lab-b   90  fail  lab --a'];
  const both = rowsOf(`${table(a)}${table(b)}`);
  expect(both.map(({ name }) => name)).toEqual(['lab-a', 'lab-b']);
  expect(repeated(both.map(({ command }) => command))).toEqual(['lab --a']);
  expect(() => rowsOf(table('lab-a 900 perhaps lab --a'))).toThrow('no row');
});
