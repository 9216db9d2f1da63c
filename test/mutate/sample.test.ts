import { expect, test } from 'vitest';
import { type CandidateMutant, isSampled, SampleChecker, strykerPlugins } from './sample.ts';

function candidate(at: number, fileName = '/clone/src/a.ts'): CandidateMutant {
  const location = { start: { line: at, column: 4 } };
  return { id: String(at), fileName, mutatorName: 'BlockStatement', replacement: '{}', location };
}

const thousand = Array.from({ length: 1_000 }, (_, at) => candidate(at));

test('a sample holds about the share that was asked for, and all of them is all', () => {
  const found = thousand.filter((mutant) => isSampled(mutant, 5)).length;
  expect(found).toBeGreaterThan(150);
  expect(found).toBeLessThan(250);
  expect(thousand.every((mutant) => isSampled(mutant, 1))).toBe(true);
});

test('a mutant is in the sample wherever the clone stands and whatever its number is', () => {
  for (const mutant of thousand) {
    const elsewhere = { ...mutant, id: 'other', fileName: '/other/place/src/a.ts' };
    expect(isSampled(elsewhere, 7)).toBe(isSampled(mutant, 7));
  }
});

test('the plugin lets through what is in the sample, and refuses the others', async () => {
  const [plugin] = strykerPlugins;
  expect(plugin?.injectableClass).toBe(SampleChecker);
  const checker = new SampleChecker({ sampleEvery: 5 });
  const answers = await checker.check(thousand);
  for (const mutant of thousand) {
    const status = isSampled(mutant, 5) ? 'passed' : 'compileError';
    expect(answers[mutant.id]).toMatchObject({ status });
  }
});
