/**
 * Hostile disks against the production steps: every case, every pair of cases, and some at random.
 * The judge reads the disks' files from outside, after the power cycle.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type BoxDraft,
  isUntouched,
  makeBox,
  removeBox,
  shareLeft,
  sparesWritten,
} from './box.fixture.ts';
import { type CaseName, caseNames, drawsOf } from './cases.fixture.ts';
import { draftBox } from './draft.fixture.ts';
import { type CleanEnd, clean } from './run.fixture.ts';

/** Combinations beside all cases and all pairs. */
const extraRuns = 60;

interface Plan {
  readonly names: readonly CaseName[];
  readonly seed: number;
}

let root = '';

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'rackwright-liars-'));
});

afterAll(() => rmSync(root, { recursive: true }));

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

test('are at least 300', () => {
  expect(singles.length + pairs.length + extras.length).toBeGreaterThanOrEqual(300);
});

test('an honest machine is certified', async () => {
  const { end, wrong } = await run({ names: [], seed: 0 });
  expect(wrong).toEqual([]);
  expect(end.certified).toEqual(['SN-d0', 'SN-d1']);
});

test.each(singles)('$names: certified only if it is erased', async (plan) => {
  expect((await run(plan)).wrong).toEqual([]);
});

/** In portions, so that a failure names its seeds and a run shows how far it is. */
const portion = 40;
const many = [...pairs, ...extras];
const portions = Array.from({ length: Math.ceil(many.length / portion) }, (_, index) =>
  many.slice(index * portion, (index + 1) * portion),
);

test.each(portions.map((plans, index) => ({ plans, number: index + 1 })))(
  'combinations, portion $number: certified only if erased',
  { timeout: 60_000 },
  async ({ plans }) => {
    const failures: string[] = [];
    for (const plan of plans) {
      const { wrong, end } = await run(plan);
      if (wrong.length === 0) continue;
      failures.push(`${JSON.stringify(plan)}: ${wrong.join('; ')} (${end.words})`);
    }
    expect(failures).toEqual([]);
  },
);

async function run({ names, seed }: Plan): Promise<{ end: CleanEnd; wrong: string[] }> {
  const folder = join(root, `box-${seed}`);
  const box = draftBox(names, drawsOf(seed));
  makeBox(folder, box);
  try {
    const end = await clean(folder);
    return { end, wrong: judge(folder, box, end) };
  } finally {
    removeBox(folder);
  }
}

/** What must not be. */
function judge(folder: string, box: BoxDraft, end: CleanEnd): string[] {
  const wrong = sparesWritten(folder, box).map((name) => `wrote the foreign disk ${name}`);
  for (const disk of box.disks) {
    const { serial } = disk;
    if (!end.planned.includes(serial) && !isUntouched(folder, disk)) {
      wrong.push(`wrote ${serial}, which is in no plan`);
    }
    if (!end.certified.includes(serial)) continue;
    const left = shareLeft(folder, disk, disk.extra['tellsNativeSize'] === false);
    if (left > 0) wrong.push(`certified ${serial} with ${Math.round(100 * left)} % left`);
  }
  const names = [...box.disks, ...box.spares].map(({ serial }) => serial);
  const named = [...names, ...box.signs.map(({ name }) => name)];
  if (end.certified.length === 0 && !named.some((name) => end.words.includes(name))) {
    wrong.push(`does not name the disk: "${end.words}"`);
  }
  return wrong;
}
