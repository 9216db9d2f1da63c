import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { BootStepKind, BootTraceSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bootRows } from './boots.ts';

const at = (seconds: number) => timestampFromMs(1_000_000 + seconds * 1_000);
const discover = { kind: BootStepKind.DISCOVER, firstTime: at(4), lastTime: at(6), count: 3 };
const kernel = {
  kind: BootStepKind.KERNEL,
  firstTime: at(10),
  lastTime: at(10),
  endTime: at(20),
  count: 1,
  bytes: 8_000_000n,
};

test('each step begins when it came first and ends when it was done, within the whole boot', () => {
  const runner = { kind: BootStepKind.RUNNER, firstTime: at(40), endTime: at(40), count: 1 };
  const steps = [discover, kernel, runner];
  const rows = bootRows(create(BootTraceSchema, { startTime: at(0), steps }));
  expect(rows.map(({ fromMs, toMs }) => [fromMs, toMs])).toEqual([
    [4_000, 6_000],
    [10_000, 20_000],
    [40_000, 40_000],
  ]);
  expect(rows.map(({ fromPercent, percent }) => [fromPercent, percent])).toEqual([
    [10, 5],
    [25, 25],
    [99.5, 0.5],
  ]);
});

test('the step that never came stands last, without a time', () => {
  const missing = BootStepKind.KERNEL;
  const rows = bootRows(create(BootTraceSchema, { startTime: at(0), steps: [discover], missing }));
  expect(rows.at(-1)).toMatchObject({ fromMs: undefined, problem: 'never came', percent: 0 });
  expect(rows).toHaveLength(2);
});

test('a step that was tried and did not come whole stands once, with its problem', () => {
  const missing = BootStepKind.KERNEL;
  const steps = [discover, { ...kernel, endTime: undefined, problem: 'timeout' }];
  const rows = bootRows(create(BootTraceSchema, { startTime: at(0), steps, missing }));
  expect(rows.map(({ problem }) => problem)).toEqual(['', 'timeout']);
});

test('a step before the boot began, or one alone, has a bar that can be seen', () => {
  const early = { ...discover, firstTime: at(-2), lastTime: at(-2) };
  const [row] = bootRows(create(BootTraceSchema, { startTime: at(0), steps: [early] }));
  expect(row).toMatchObject({ fromPercent: 0, percent: 0.5 });
});
