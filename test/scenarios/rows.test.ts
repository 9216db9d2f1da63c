/** Every scenario is either a test here or a line of the README that says why it is not. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scenarioIds } from './ids.ts';

const folder = import.meta.dirname;
/** Rows of images and pools are shown beside what they are about. */
const folders = [
  folder,
  ...['controlplane/src/pool', 'agent/src/images', 'agent/src/operations'].map((path) =>
    join(folder, '../..', path),
  ),
];
const testTexts = folders.flatMap((path) =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(path, name), 'utf8')),
);
const readme = readFileSync(join(folder, 'README.md'), 'utf8');

/** Ids that the names of tests in `text` start with. */
function testedIn(text: string): string[] {
  const names = /(?:\btest|[\])]\))\(\s*['"`]((?:[a-z0-9]+-[A-Z]?\d+, )*[a-z0-9]+-[A-Z]?\d+):/g;
  return [...text.matchAll(names)].flatMap((found) => found[1]?.split(', ') ?? []);
}

/** Ids of the lines under a heading of the README. */
function listedUnder(text: string, heading: string): string[] {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^- `([a-z0-9]+-[A-Z]?\d+)`: \S/gm)].map((found) => found[1] ?? '');
}

const tested = [...new Set(testTexts.flatMap(testedIn))];
const notYet = listedUnder(readme, 'Not yet');
const differs = listedUnder(readme, 'Ours differs');
const partly = listedUnder(readme, 'Shown in part');

test('every scenario has a test, or a reason in the README', () => {
  const answered = new Set([...tested, ...notYet, ...differs]);
  expect(scenarioIds.filter((id) => !answered.has(id))).toEqual([]);
});

test('tests and README name no scenario that does not exist, and none twice in one list', () => {
  const known = new Set(scenarioIds);
  for (const list of [tested, notYet, differs, partly]) {
    expect(list.filter((id) => !known.has(id))).toEqual([]);
    expect(list.filter((id, index) => list.indexOf(id) !== index)).toEqual([]);
  }
});

test('a scenario with a test is not listed as missing; one that is partly shown has a test', () => {
  expect(notYet.filter((id) => tested.includes(id))).toEqual([]);
  expect(partly.filter((id) => !tested.includes(id))).toEqual([]);
});

test('the search finds the ids in names of tests and in lists, and nothing else', () => {
  const quote = "'";
  const text = [
    `test(${quote}ironic-1: runs`,
    `test.each<[string]>([[${quote}nvme0${quote}]])(${quote}ironic-53: erases`,
    `test(\n  ${quote}metal3-23, garm-T2: waits`,
    `const id = ${quote}ironic-2: no test`,
  ].join('\n');
  expect(testedIn(text)).toEqual(['ironic-1', 'ironic-53', 'metal3-23', 'garm-T2']);
  const list =
    '## Not yet\n\n- `ironic-9`: later\n- `ironic-10`:\n\n## Other\n\n- `ironic-11`: x\n';
  expect(listedUnder(list, 'Not yet')).toEqual(['ironic-9']);
});
