/**
 * With all checks each liar is caught. Without the check that is meant for it, its lie gets
 * through, and the judge reports that.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeBox } from './box.fixture.ts';
import { checkNames, checks, rowSeed } from './checks.fixture.ts';
import { judge } from './judge.fixture.ts';
import { clean, type Site, siteOf } from './run.fixture.ts';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rackwright-checks-'));
});

afterEach(() => rmSync(root, { recursive: true }));

test.each(checkNames)('%s catches its liar, and nothing else does', async (name) => {
  const { liar, takeAway, baseline = (site: Site) => site, red } = checks[name];
  const run = async (folder: string, site: Site) => {
    const box = liar();
    makeBox(folder, box);
    const end = await clean(folder, site);
    return { certified: end.certified, wrong: judge(folder, box, end) };
  };
  const site = baseline(siteOf(rowSeed));
  expect(await run(join(root, 'with'), site)).toEqual({ certified: [], wrong: [] });
  const without = await run(join(root, 'without'), takeAway(site));
  expect(without.wrong.join('; ')).toMatch(red);
});
