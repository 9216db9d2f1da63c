/**
 * Each page that tells how to add a part: the compiler names the places that the page lists. The
 * changes of all pages are made in one copy of the sources, since each look at it takes seconds.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { folderInClone } from '../run-folder.ts';
import { root } from '../tidy/sources.ts';
import { namedPlaces, type Page, pageLinesMax, pages } from './pages.ts';
import { applyEdit, copySources, filesThatFail, generate } from './scratch.ts';

const textOf = ({ path }: Page): string => readFileSync(join(root, path), 'utf8');
let folder = '';
/** For the compiler, twice, on a machine that is busy with other tests. */
const timeoutMs = 1_500_000;

beforeAll(() => {
  folder = folderInClone('how-to-');
  copySources(folder);
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Makes the changes of one stage of every page. */
function make(stage: number): void {
  const edits = pages.flatMap(({ stages }) => stages[stage] ?? []);
  for (const edit of edits) applyEdit(folder, edit);
  if (edits.some(({ path }) => path.endsWith('.proto'))) generate(folder);
}

/** What the pages list up to a stage: nothing that they list is done in the copy. */
function listed(stage: number): string[] {
  const places = pages.flatMap((page) => {
    const lists = namedPlaces(textOf(page));
    expect(lists.map(({ length }) => length > 0)).toEqual(page.stages.map(() => true));
    return lists.slice(0, stage + 1).flat();
  });
  return [...new Set(places)].sort();
}

test.each(pages)('$path fits on a screen', (page) => {
  expect(textOf(page).trimEnd().split('\n').length).toBeLessThanOrEqual(pageLinesMax);
});

test('the compiler names the places that the pages list, and no others', {
  timeout: timeoutMs,
}, async () => {
  // What did not compile before would stand beside what the pages list.
  make(0);
  expect(await filesThatFail(folder)).toEqual(listed(0));
  make(1);
  expect(await filesThatFail(folder)).toEqual(listed(1));
});

test('a switch that takes any other value for the last one is noticed', {
  timeout: timeoutMs,
}, async () => {
  const path = 'agent/src/bmc-drivers.ts';
  // As the compiler has just said.
  expect(listed(1)).toContain(path);
  applyEdit(folder, { path, from: "case 'redfish': {", to: 'default: {' });
  expect(await filesThatFail(folder)).not.toContain(path);
});
