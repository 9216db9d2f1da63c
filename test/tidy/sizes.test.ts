import { expect, test } from 'vitest';
import { columnsMax, fileLinesMax, findSizes, testLinesMax } from './sizes.ts';

const path = 'packages/dhcp/src/packet.test.ts';

test('the check finds a file of one line too many, and takes one that is full', () => {
  expect(findSizes({ path, text: 'a;\n'.repeat(fileLinesMax) })).toEqual([]);
  expect(findSizes({ path, text: 'a;\n'.repeat(fileLinesMax + 1) })).toHaveLength(1);
});

test('the check finds a line of one column too many, counting characters', () => {
  const full = `a ${'é'.repeat(columnsMax - 2)}`;
  expect(findSizes({ path, text: `\n${full}\n` })).toEqual([]);
  expect(findSizes({ path, text: `\n${full}é\n` })).toMatchObject([{ line: 2 }]);
});

test('the check takes a single word that cannot be broken', () => {
  const word = 'x'.repeat(columnsMax + 20);
  expect(findSizes({ path, text: `  '${word}',\n * ${word}\n// ${word}` })).toEqual([]);
  expect(findSizes({ path, text: `  a('${word}', b)` })).toHaveLength(1);
});

test('the check takes wide lines of tables that quote code, and of no other file there', () => {
  const text = `find: '${'a '.repeat(columnsMax)}',`;
  expect(findSizes({ path: 'test/sim/planted/agent-plants.ts', text })).toEqual([]);
  expect(findSizes({ path: 'test/sim/planted/hunt.ts', text })).toHaveLength(1);
});

test('the check finds a test of one line too many', () => {
  const ofLines = (lines: number): string =>
    [
      "describe('d', () => {",
      "  test('t', async () => {",
      ...Array.from({ length: lines - 2 }, () => '    a();'),
      '  });',
      '});',
    ].join('\n');
  expect(findSizes({ path, text: ofLines(testLinesMax) })).toEqual([]);
  expect(findSizes({ path, text: ofLines(testLinesMax + 1) })).toMatchObject([{ line: 2 }]);
});
