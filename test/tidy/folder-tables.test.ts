import { expect, test } from 'vitest';
import { findDependencyFaults, findFolderFaults, findMissingPaths } from './folder-tables.ts';

const paths = ['a/README.md', 'a/src/b/c.ts', 'a/src/d/e/f.ts', 'a/src/g.ts', 'a/src/testing/h.ts'];

function folderFaults(...lines: readonly string[]): unknown[] {
  const faults = findFolderFaults({ path: 'a/README.md', text: lines.join('\n') }, paths);
  return faults.map(({ line, message }) => [line, message]);
}

test('the check takes a table that names each folder', () => {
  const table = ['| folder of `src` | what |', '|---|---|', '| `b`, `d` | x |', '| `g.ts` | y |'];
  expect(folderFaults(...table)).toEqual([]);
  expect(folderFaults('| folder | what |', '|---|---|', '| [src/b/](src/b/) | x |')).toEqual([]);
  expect(folderFaults('| command | does |', '|---|---|', '| `z` | x |')).toEqual([]);
});

test('the check finds a row of a folder that does not exist, and a folder without a row', () => {
  const table = ['| folder of `src`, lowest first | what |', '|---|---|', '| `b`, `turn` | x |'];
  expect(folderFaults('# A', ...table)).toEqual([
    [4, 'there is no a/src/turn'],
    [0, 'no row names a/src/d'],
  ]);
  expect(folderFaults('| folder | what |', '|---|---|', '| `src/z` | x |')).toEqual([
    [3, 'there is no a/src/z'],
  ]);
});

test('the check finds a path in backquotes that leads nowhere', () => {
  const find = (text: string) => findMissingPaths({ path: 'a/README.md', text }, paths);
  expect(find('`src/d/e`, `a/src/b/`, `src/g.ts`')).toEqual([]);
  expect(find('`other/x`, `a`, `a/x y`, `a/NAME/x.ts`')).toEqual([]);
  expect(find('fine\n`src/z`')).toMatchObject([{ line: 2, message: 'there is no src/z' }]);
});

test('the check finds a column "depends on" that differs from the graph', () => {
  const graph = 'b (tests) → x c\nb → node:fs d/sub d c/other x\nc (tests) → x\nd → c\n';
  const find = (...rows: readonly string[]) => {
    const text = ['| folder | what | depends on |', '|---|---|---|', ...rows].join('\n');
    return findDependencyFaults({ path: 'README.md', text }, graph);
  };
  expect(find('| [p/b/](p/b/) | x | c, d |', '| [p/c/](p/c/) | x | |')).toEqual([]);
  expect(find('| [b/](b/) | x | everything |', '| [b/](b/) | x | packages |')).toEqual([]);
  expect(find('| [p/c/](p/c/), [p/d/](p/d/) | x | c |')).toMatchObject([
    { line: 3, message: 'p/c depends on "", and the table has "c"' },
  ]);
  expect(find('| [p/b/](p/b/) | x | d, c |', '| [p/d/](p/d/) | x | |')).toHaveLength(2);
});
