/** What the corpus has once failed, or reached code that no seed reaches: each is replayed here. */
import { describe, expect, test } from 'vitest';
import { corpusTargets, readCorpus } from './corpus.ts';
import { escapeBytes, unescapeBytes } from './escape.ts';
import { type Judge, makeJudge } from './judge.ts';
import { allTargets } from './targets.ts';

const targets = await allTargets();

async function failing(judge: Judge, inputs: readonly Uint8Array[]): Promise<string[]> {
  const found: string[] = [];
  for (const input of inputs) {
    const failure = await judge(input);
    // The peak of a process that runs other tests says nothing.
    if (failure === undefined || failure.signature === 'peak') continue;
    found.push(`${failure.kind}: ${failure.text}: ${escapeBytes(input.subarray(0, 200))}`);
  }
  return found;
}

test('targets have different names, and every folder of the corpus is of one', () => {
  const names = targets.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(corpusTargets().filter((name) => !names.includes(name))).toEqual([]);
});

describe.each(targets.map((target) => [target.name, target] as const))('%s', (name, target) => {
  test('the parser takes its seeds and the corpus, each with a value or a refusal', async () => {
    expect(target.seeds.length).toBeGreaterThan(0);
    expect(await failing(makeJudge(target), [...target.seeds, ...readCorpus(name)])).toEqual([]);
  });

  test('the parser takes at least one of its seeds without a refusal', async () => {
    const taken: Uint8Array[] = [];
    for (const seed of target.seeds) {
      try {
        await target.parse(seed);
        taken.push(seed);
      } catch {
        // A refusal.
      }
    }
    expect(taken.length).toBeGreaterThan(0);
  });
});

test('an escaped input is read back as it was', () => {
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  expect(escapeBytes(all)).toMatch(/^[\x20-\x7e]+$/);
  expect(unescapeBytes(escapeBytes(all))).toEqual(all);
  expect(() => unescapeBytes('\\q')).toThrow('not an escaped input');
});
