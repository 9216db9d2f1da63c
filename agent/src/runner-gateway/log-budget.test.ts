import { create } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { type agent, runner } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { LogBudget, stepLogBytesPerSecondMax, stepLogPieceBytesMax } from './log-budget.ts';

function piece(bytes: number, offset = 0n): runner.StepLog {
  return create(runner.StepLogSchema, {
    operationId: 'op',
    offset,
    content: new Uint8Array(bytes),
  });
}

test('the budget hands pieces on as they are, with the host that the agent knows', () => {
  const told: agent.StepLog[] = [];
  const budget = new LogBudget(new VirtualClock(), (log) => told.push(log));
  budget.pass('uid', piece(3, 7n));
  expect(told).toMatchObject([{ operationId: 'op', hostUid: 'uid', offset: 7n }]);
  expect(told[0]?.content).toHaveLength(3);
});

test('the budget leaves out what is too much, and goes on when time has passed', () => {
  const clock = new VirtualClock();
  let bytes = 0;
  const budget = new LogBudget(clock, ({ content }) => {
    bytes += content.length;
  });
  for (let count = 0; count < 100; count += 1) budget.pass('uid', piece(stepLogPieceBytesMax));
  const atOnce = bytes;
  expect(atOnce).toBeLessThanOrEqual(2 * stepLogBytesPerSecondMax);
  clock.after(1_000, () => {});
  clock.step();
  for (let count = 0; count < 100; count += 1) budget.pass('uid', piece(stepLogPieceBytesMax));
  expect(bytes - atOnce).toBe(stepLogBytesPerSecondMax);
});

test('the budget takes no piece of more than its bound, and no empty one', () => {
  let pieces = 0;
  const budget = new LogBudget(new VirtualClock(), () => {
    pieces += 1;
  });
  budget.pass('uid', piece(stepLogPieceBytesMax + 1));
  budget.pass('uid', piece(0));
  expect(pieces).toBe(0);
});
