/**
 * How big things may be. Functions of production code are measured by the linter, which parses;
 * bodies of tests here, by the indentation that the formatter guarantees.
 */
import type { Finding, SourceFile } from './sources.ts';

export const fileLinesMax = 500;
export const testLinesMax = 60;
export const columnsMax = 100;

export function findSizes(file: SourceFile): Finding[] {
  return [...fileTooLong(file), ...linesTooWide(file), ...testsTooLong(file)];
}

function fileTooLong(file: SourceFile): Finding[] {
  const lines = file.text.replace(/\n$/, '').split('\n').length;
  if (lines <= fileLinesMax) return [];
  const message = `has ${lines} lines, ${fileLinesMax} are allowed; split it by concept`;
  return [{ path: file.path, line: 0, message }];
}

/** Tables of planted defects quote production code as it stands, with its indentation. */
const quotesCode = /^test\/sim\/planted\/[\w-]+-plants\.ts$/;

function linesTooWide(file: SourceFile): Finding[] {
  if (quotesCode.test(file.path)) return [];
  return file.text.split('\n').flatMap((line, index) => {
    const columns = [...line].length;
    if (columns <= columnsMax || isUnbreakable(line)) return [];
    const message = `${columns} columns, ${columnsMax} are allowed`;
    return [{ path: file.path, line: index + 1, message }];
  });
}

/** One word that no formatter can break: an address in a comment, a key or digest in quotes. */
function isUnbreakable(line: string): boolean {
  return !/\S\s+\S/.test(line.replace(/^\s*(\*|\/\/)\s*/, ''));
}

function testsTooLong(file: SourceFile): Finding[] {
  if (!file.path.endsWith('.test.ts')) return [];
  const lines = file.text.split('\n');
  return lines.flatMap((line, index) => {
    const opened = /^(\s*)(?:test|it)\b.*\(.*=>\s*\{$/.exec(line);
    if (opened === null) return [];
    const indent = opened[1] ?? '';
    const end = lines.findIndex((later, at) => at > index && later.startsWith(`${indent}}`));
    const length = end - index + 1;
    if (end === -1 || length <= testLinesMax) return [];
    const message = `this test has ${length} lines, ${testLinesMax} are allowed; split it`;
    return [{ path: file.path, line: index + 1, message }];
  });
}
