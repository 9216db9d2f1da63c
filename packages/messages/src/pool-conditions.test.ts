import { create } from '@bufbuild/protobuf';
import { expect, expectTypeOf, test } from 'vitest';
import { PoolStatusSchema } from './gen/rackwright/v1/pool_pb.ts';
import { isPoolBecause, type PoolReasons, poolCondition } from './pool-conditions.ts';

const status = create(PoolStatusSchema, {
  conditions: [
    { type: 'UpToDate', reason: 'Halted' },
    { type: 'Degraded', status: true, reason: 'a reason of the future' },
  ],
});

test('a condition is found by its type', () => {
  expect(poolCondition(status, 'UpToDate')).toBe(status.conditions[0]);
  expect(poolCondition(status, 'Resolved')).toBeUndefined();
  expect(poolCondition(undefined, 'UpToDate')).toBeUndefined();
});

test('a condition has one of these reasons, or none of this version', () => {
  expect(isPoolBecause(status, 'UpToDate', 'Paused', 'Halted')).toBe(true);
  expect(isPoolBecause(status, 'UpToDate', 'Paused')).toBe(false);
  expect(isPoolBecause(status, 'Degraded', 'Healthy', 'RolloutHalted')).toBe(false);
  expect(isPoolBecause(undefined, 'UpToDate', 'Paused')).toBe(false);
});

test('the compiler knows each reason by its condition', () => {
  expectTypeOf<'Halted'>().toExtend<PoolReasons['UpToDate']>();
  expectTypeOf<'Halted'>().not.toExtend<PoolReasons['Degraded']>();
  expectTypeOf<'RolloutHalted'>().not.toExtend<PoolReasons['UpToDate']>();
});
