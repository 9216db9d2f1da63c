import { expect, test } from 'vitest';
import { LineBudget } from './line-budget.ts';

function clockAt(time: { nowMs: number }) {
  return {
    nowMs: () => time.nowMs,
    suspendAwareMs: () => time.nowMs,
    after: () => () => {},
  };
}

test('a budget lets lines through up to its limit in a period, then counts those left out', () => {
  const time = { nowMs: 0 };
  const written: number[] = [];
  const budget = new LineBudget(clockAt(time), 2, 1_000);
  const spend = () => budget.spend((suppressed) => written.push(suppressed));
  for (let line = 0; line < 5; line += 1) spend();
  expect(written).toEqual([0, 0]);
  time.nowMs = 1_000;
  spend();
  expect(written).toEqual([0, 0, 3]);
});

test('the log does not fall silent when the clock goes back', () => {
  const time = { nowMs: 50_000 };
  let lines = 0;
  const budget = new LineBudget(clockAt(time), 1, 1_000);
  const spend = () => budget.spend(() => (lines += 1));
  spend();
  time.nowMs = 10;
  spend();
  expect(lines).toBe(2);
});
