import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isTypeScript, readSources, repositoryPaths, root } from './sources.ts';
import {
  findReplacedFileNames,
  findReplacedWords,
  glossaryRows,
  namedOtherwise,
  replacedWords,
} from './words.ts';

const termsMax = 40;
const paths = repositoryPaths();
const code = readSources(paths.filter(isTypeScript));
const rows = glossaryRows(readFileSync(join(root, 'GLOSSARY.md'), 'utf8'));
const terms = rows.flatMap((row) => row.terms);

test('no type has a name with a word that the glossary replaces', () => {
  expect(code.flatMap(findReplacedWords)).toEqual([]);
});

test('the check finds a replaced word in a type, and not in values, texts and tests', () => {
  const inFile = (path: string) => {
    const text =
      'export interface FairTurns {\n}\nconst turn = 1; // type Turn = 1\n' +
      'type Return = 1;\ntype LastPlace = 1;\ntype Asked = 1;\ntype AskedPorts = 1;';
    return findReplacedWords({ path, text }).map(({ line, message }) => `${line} ${message}`);
  };
  expect(inFile('packages/bmc/src/fair.ts')).toEqual([
    '1 "FairTurns" says "turn"; the glossary\'s term is "slot"',
    '5 "LastPlace" says "place"; say what it holds',
    '6 "Asked" says "Asked"; say what it holds',
  ]);
  expect(inFile('packages/bmc/src/fair.test.ts')).toEqual([]);
});

test('no file has a name with a word that the glossary replaces', () => {
  expect(findReplacedFileNames(paths)).toEqual([]);
});

test('a replaced word in the name of a file or folder is found, as a whole word only', () => {
  const found = [
    'packages/rpc/src/fair-turns.test.ts',
    'packages/rpc/src/door/crowd.ts',
    'agent/src/outstanding.ts',
    'test/e2e/data-returned.test.ts',
    'agent/src/told.ts',
    'agent/src/disk-places.ts',
    'agent/src/lookup.ts',
    'test/sim/world.ts',
    'test/lab/world.ts',
  ].flatMap((path) => findReplacedFileNames([path]));
  expect(found.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    'packages/rpc/src/fair-turns.test.ts: ' +
      'the file\'s name says "turn"; the glossary\'s term is "slot"',
    'packages/rpc/src/door/crowd.ts: ' +
      'the file\'s name says "door"; the glossary\'s term is "listener"',
    'agent/src/told.ts: the file\'s name says "told"; say what it holds',
    'agent/src/disk-places.ts: the file\'s name says "place"; say what it holds',
    'test/lab/world.ts: the file\'s name says "world"; the glossary\'s term is "snapshot"',
  ]);
});

test('each exception from the words of file names is of a file that there is', () => {
  const unused = namedOtherwise.filter(
    ({ place, word }) => !paths.some((path) => place.test(path) && path.includes(word)),
  );
  expect(unused).toEqual([]);
});

test('the glossary has few terms, in order, each once and with its source', () => {
  expect(terms.length).toBeGreaterThan(20);
  expect(terms.length).toBeLessThanOrEqual(termsMax);
  const firsts = rows.map((row) => (row.terms[0] ?? '').toLowerCase());
  expect(firsts).toEqual([...firsts].sort());
  expect(new Set(terms).size).toBe(terms.length);
  expect(rows.filter(({ means, source }) => means === '' || source === '')).toEqual([]);
});

test('the glossary has the term of each word that it replaces', () => {
  expect(Object.values(replacedWords).filter((term) => !terms.includes(term))).toEqual([]);
});
