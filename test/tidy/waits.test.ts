import { expect, test } from 'vitest';
import { findWaits } from './waits.ts';

function linesIn(text: string, path = 'agent/src/a.test.ts'): number[] {
  return findWaits({ path, text }).map(({ line }) => line);
}

test.each([
  'while (busy()) await sleep(5);',
  'while ((await sizeOf()) < 300) await new Promise((resolve) => setTimeout(resolve, 5));',
  'while (warnings.length < 3) {\n  clock.step();\n  await new Promise((r) => setImmediate(r));\n}',
  'for (;;) {\n  if (await isGone()) return;\n  await delay(20);\n}',
  'for (let round = 0; ; round += 1) {\n  await pause(20);\n}',
  'await expect.poll(isGone).toBe(true);',
  'await expect\n  .poll(() => lines.some(isRefused), { timeout: 5_000 })\n  .toBe(false);',
])('the check finds %j', (text) => {
  expect(linesIn(`\n${text}\n`)).toEqual([2]);
});

test.each([
  'while (performance.now() < endMs) await sleep(5);',
  'while (busy()) {\n  if (Date.now() > end) throw new Error(what);\n  await sleep(5);\n}',
  'for (let round = 0; round < roundsMax && busy(); round += 1) await sleep(5);',
  'while (!isOver) await sleep(5);',
  'while (clock.nowMs() < endMs && clock.step());',
  "await expect.poll(isGone, { message: 'it is gone' }).toBe(true);",
  'await expect.poll(() => left).toEqual([]);\nexpect(others).toBe(true);',
  "const text = 'while (busy()) await sleep(5);';",
])('the check lets %j stand', (text) => {
  expect(linesIn(text)).toEqual([]);
});

test('the check looks at tests only, and not at benchmarks', () => {
  const text = 'while (busy()) await sleep(5);';
  expect(linesIn(text, 'agent/src/a.ts')).toEqual([]);
  expect(linesIn(text, 'test/bench/store/main.ts')).toEqual([]);
});
