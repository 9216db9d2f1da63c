import { expect, test } from 'vitest';
import { isTypeScript, readSources, repositoryPaths } from './sources.ts';
import { findBareTestNames } from './test-names.ts';

test('no test outside every group has a name without a subject', () => {
  const code = readSources(repositoryPaths().filter(isTypeScript));
  expect(code.flatMap(findBareTestNames)).toEqual([]);
});

test('the check finds a name without a subject, of a single test and of a table', () => {
  const text = [
    "test('is closed', () => {});",
    "test.each([1, 2])('has %i', () => {});",
    'test.each([\n  1,\n])(\n  "takes %i",\n  () => {},\n);',
    'test.skipIf(isBusy)(`says why`, () => {});',
    "test('names the entry that comes first', () => {});",
    "test('writes nothing', () => {});",
    "test('accepts a file', () => {});",
  ].join('\n');
  const found = findBareTestNames({ path: 'agent/src/a.test.ts', text });
  expect(found.map(({ line, message }) => `${line} ${message}`)).toEqual([
    '1 the test\'s name has no subject: "is closed"',
    '2 the test\'s name has no subject: "has %i"',
    '6 the test\'s name has no subject: "takes %i"',
    '9 the test\'s name has no subject: "says why"',
    '10 the test\'s name has no subject: "names the entry that comes first"',
    '11 the test\'s name has no subject: "writes nothing"',
    '12 the test\'s name has no subject: "accepts a file"',
  ]);
});

test('the check lets a group be the subject, and words that only begin like a verb', () => {
  const text = [
    "describe('a port', () => {\n  test('is closed', () => {});\n});",
    "test('island hosts boot', () => {});",
    "test('writes are slowed', () => {});",
    "test('names that differ in case are one', () => {});",
    "test.each(['is', 'has x'])('a port %s', () => {});",
  ].join('\n');
  expect(findBareTestNames({ path: 'agent/src/a.test.ts', text })).toEqual([]);
  const product = "test('is no test', () => {});";
  expect(findBareTestNames({ path: 'agent/src/a.ts', text: product })).toEqual([]);
});
