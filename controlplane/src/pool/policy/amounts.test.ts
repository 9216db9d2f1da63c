import { create } from '@bufbuild/protobuf';
import { type PoolAmount, PoolAmountSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { failureThreshold, hostsOf, unavailableMax } from './amounts.ts';

const count = (value: number): PoolAmount =>
  create(PoolAmountSchema, { amount: { case: 'count', value } });
const percent = (value: number): PoolAmount =>
  create(PoolAmountSchema, { amount: { case: 'percent', value } });

test.each([
  [count(0), 100, 0],
  [count(7), 3, 7],
  [percent(0), 100, 0],
  [percent(10), 5, 1],
  [percent(10), 29, 2],
  [percent(10), 30, 3],
  [percent(100), 8, 8],
  [percent(100), 0, 1],
  [create(PoolAmountSchema), 100, 42],
  [undefined, 100, 42],
])('amount %# is that number of hosts', (amount, hosts, wanted) => {
  expect(hostsOf(amount, hosts, 42)).toBe(wanted);
});

test('one host may be out by default', () => {
  expect(unavailableMax(undefined, 500)).toBe(1);
  expect(unavailableMax(percent(20), 500)).toBe(100);
});

test.each([
  [undefined, 1, 2],
  [undefined, 59, 2],
  [undefined, 60, 3],
  [undefined, 1_000, 50],
  [count(0), 1_000, 1],
  [count(9), 1_000, 9],
  [percent(0), 1_000, 1],
  [percent(2), 1_000, 20],
])('a number of failures stops a rollout, case %#', (amount, hosts, wanted) => {
  expect(failureThreshold(amount, hosts)).toBe(wanted);
});
