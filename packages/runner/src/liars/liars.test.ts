/**
 * Hostile disks against the production steps: every case, every pair of cases, and some at random.
 * The judge reads the disks' files from outside, after the power cycle. A combination that failed
 * once is named in `regressions`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shareFound } from '@rackwright/erasure';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blockBytes, diskDraft, makeBox, removeBox } from './box.fixture.ts';
import { type CaseName, caseNames, drawsOf } from './cases.fixture.ts';
import { draftBox } from './draft.fixture.ts';
import { judge } from './judge.fixture.ts';
import { type CleanEnd, clean, siteOf } from './run.fixture.ts';

interface Plan {
  readonly names: readonly CaseName[];
  readonly seed: number;
}

/** Combinations of three, beside all cases and all pairs. */
const extraRuns = 60;
/** In portions, so that a run shows how far it is. */
const portion = 40;

let root = '';

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'rackwright-liars-'));
});

afterAll(() => rmSync(root, { recursive: true }));

/** Found by this test, with the cause. */
const regressions: readonly (Plan & { readonly was: string })[] = [
  {
    names: ['cache loses even what was flushed'],
    seed: 5,
    was: 'a cryptographic erase was lost with the power, its challenge too, and nobody noticed',
  },
];

const singles: Plan[] = caseNames.map((name, index) => ({ names: [name], seed: 1 + index }));
const pairs: Plan[] = caseNames.flatMap((left, index) =>
  caseNames
    .slice(index + 1)
    .map((right, offset) => ({ names: [left, right], seed: 1_000 * (index + 1) + offset })),
);
const extras: Plan[] = Array.from({ length: extraRuns }, (_, index) => {
  const seed = 1_000_000 + index;
  const draw = drawsOf(seed);
  const names = [0, 1, 2].map(() => caseNames[Math.floor(draw() * caseNames.length)]);
  return { names: [...new Set(names.filter((name) => name !== undefined))], seed };
});
const many = [...pairs, ...extras];

test('the plans are at least 300', () => {
  expect(singles.length + many.length).toBeGreaterThanOrEqual(300);
});

test('an honest machine is certified', async () => {
  const { end, wrong } = await run({ names: [], seed: 0 });
  expect(wrong).toEqual([]);
  expect(end.certified).toEqual(['SN-d0', 'SN-d1']);
});

test.each(regressions)(
  'the disks of seed $seed are certified only if erased: $was',
  async (plan) => {
    expect((await run(plan)).wrong).toEqual([]);
  },
);

test.each(singles.map((plan) => ({ plan, name: plan.names.join() })))(
  'a disk with the lie $name is certified only if it is erased',
  async ({ plan }) => {
    expect((await run(plan)).wrong).toEqual([]);
  },
);

describe('combinations', () => {
  const portions = Array.from({ length: Math.ceil(many.length / portion) }, (_, index) => {
    const plans = many.slice(index * portion, (index + 1) * portion);
    return { plans, first: plans[0]?.seed, last: plans.at(-1)?.seed };
  });
  test.each(portions)(
    'the disks of seeds $first to $last are certified only if erased',
    { timeout: 60_000 },
    async ({ plans }) => {
      const failures: string[] = [];
      for (const plan of plans) {
        const { wrong, end } = await run(plan);
        if (wrong.length === 0) continue;
        failures.push(`${JSON.stringify(plan)}: ${wrong.join('; ')} (${end.text})`);
      }
      expect(failures).toEqual([]);
    },
  );
});

describe('sampled', () => {
  const places = 96;
  const confidence = 0.99;
  const blocks = 1_024;
  test('the data left on a certified disk is less than is found with 99 %', async () => {
    const missed: string[] = [];
    let certified = 0;
    for (let seed = 1; seed <= 24; seed += 1) {
      const draw = drawsOf(2_000_000 + seed);
      const disk = diskDraft('d0', 'overwrite', blocks);
      const hole = 1 + Math.floor(draw() * 200);
      const offset = Math.floor(draw() * (blocks - hole)) * blockBytes;
      disk.lies.push({ kind: 'ignores', offset, length: hole * blockBytes });
      const box = { disks: [disk], spares: [], signs: [] };
      const folder = join(root, `sampled-${seed}`);
      makeBox(folder, box);
      const verification = { level: 'sampled', places } as const;
      const end = await clean(folder, { ...siteOf(seed), verification });
      certified += end.certified.length;
      missed.push(...judge(folder, box, end, () => shareFound(places, confidence)));
      removeBox(folder);
    }
    // Small holes pass, as the certificate says.
    expect(certified).toBeGreaterThan(0);
    expect(missed).toEqual([]);
  });
});

async function run({ names, seed }: Plan): Promise<{ end: CleanEnd; wrong: string[] }> {
  const folder = join(root, `box-${seed}-${names.length}`);
  const box = draftBox(names, drawsOf(seed));
  makeBox(folder, box);
  try {
    const end = await clean(folder, siteOf(seed));
    return { end, wrong: judge(folder, box, end) };
  } finally {
    removeBox(folder);
  }
}
