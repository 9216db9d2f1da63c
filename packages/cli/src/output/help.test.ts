import { expect, test } from 'vitest';
import { foldHelp } from './help.ts';

const text = 'word '.repeat(20).trim();

test('the help folds a description between words', () => {
  const [first = '', second = ''] = foldHelp(text).split('\n');
  expect(first).toHaveLength(79);
  expect(`${first} ${second}`).toBe(text);
});

test('the help folds the second column of a table under itself, and no narrow line', () => {
  const folded = foldHelp(`  short  Text\n  -h  --help   ${text}`).split('\n');
  expect(folded[0]).toBe('  short  Text');
  expect(folded[1]).toMatch(/^ {2}-h {2}--help {3}word word/);
  expect(folded[2]).toMatch(/^ {15}word/);
  expect(folded.every((line) => line.length <= 80)).toBe(true);
});

test('the help gives the second column lines of its own where the first is wide', () => {
  const flag = `--${'x'.repeat(40)}`;
  expect(foldHelp(`      ${flag}  Text  [on|off]`)).toBe(`      ${flag}\n        Text [on|off]`);
});

test('the help folds a list of choices between them', () => {
  const choices = Array.from({ length: 30 }, (_, index) => `command${index}`).join('|');
  const folded = foldHelp(`  rackwright host ${choices} ...`).split('\n');
  expect(folded.length).toBeGreaterThan(3);
  expect(folded.every((line) => line.length <= 80)).toBe(true);
  expect(folded.map((line) => line.trim()).join('')).toBe(`rackwright host ${choices} ...`);
});

test('the help says nothing of an empty default', () => {
  expect(foldHelp('  [--a]  What it is  [default = ""]')).toBe('  [--a]  What it is');
});
