/** The fuzzer finds each planted defect, names it, and makes its input smaller. */
import { expect, test } from 'vitest';
import { escapeBytes } from './escape.ts';
import { fuzzTarget } from './fuzz-target.ts';
import { makeJudge } from './judge.ts';
import type { FailureKind } from './target.ts';
import { loadTarget } from './targets.ts';

// The inputs end a campaign: on a slow machine it takes longer and finds the same.
const options = {
  ...{ seed: 1, seconds: 60, inputs: 2_048, failuresMax: 1 },
  ...{ reduceSeconds: 60, reduceProcesses: 2 },
};

const planted: readonly (readonly [name: string, kind: FailureKind])[] = [
  ['throws', 'thrown'],
  ['loops', 'hang'],
  ['waits', 'unsettled'],
  ['slows', 'slow'],
  ['grows', 'growth'],
  ['swells', 'memory'],
  ['answersLarge', 'large'],
  ['peaks', 'memory'],
  ['pollutes', 'prototype'],
];
/** Each try of these needs a process of its own, so that there are few. */
const deadly = ['loops', 'waits', 'grows', 'swells', 'peaks'];

test.each(planted)('the fuzzer finds a parser that %s', async (name, kind) => {
  const { failures } = await fuzzTarget(await loadTarget(`planted.${name}`), options);
  const [found] = failures.filter((each) => each.failure.kind === kind);
  expect(failures.map(({ failure }) => failure.kind)).toContain(kind);
  expect(found).toMatchObject({ alone: true });
  const input = escapeBytes(found?.input ?? new Uint8Array());
  // "head:" and "<" are what it takes.
  if (deadly.includes(name)) expect(input).toMatch(/^head:.{0,24}$/);
  else expect(input).toBe('head:<');
});

test('a process that uses much memory itself finds a parser that peaks', async () => {
  const large = Buffer.alloc(256 * 2 ** 20, 1);
  const target = await loadTarget('planted.peaks');
  const { failures } = await fuzzTarget(target, { ...options, reduceProcesses: 0 });
  expect(large.at(-1)).toBe(1);
  expect(failures.map(({ failure }) => failure.kind)).toContain('memory');
});

test('a parser that is well has no failure, and the same inputs reach the same', async () => {
  const target = await loadTarget('planted.isWell');
  const few = { ...options, seconds: 60, inputs: 1_024 };
  const [first, second] = [await fuzzTarget(target, few), await fuzzTarget(target, few)];
  expect(first.failures).toEqual([]);
  expect(first.inputs).toBeGreaterThanOrEqual(1_024);
  expect(second.reached).toEqual(first.reached);
});

test('an error that is no refusal of the target is named by its class and its place', async () => {
  const target = await loadTarget('planted.throws');
  const encode = (text: string) => new TextEncoder().encode(text);
  const judge = makeJudge(target);
  expect(await judge(encode('no begin'))).toBeUndefined();
  expect(await judge(encode('head:<'))).toMatchObject({
    kind: 'thrown',
    signature: expect.stringMatching(/^SyntaxError at test\/fuzz\/targets\/planted\.ts:\d+$/),
  });
});
