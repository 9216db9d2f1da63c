import { create } from '@bufbuild/protobuf';
import { expect, expectTypeOf, test } from 'vitest';
import { FaultSchema } from './gen/rackwright/v1/host_pb.ts';
import { faultOfType, type HostFault, hasFault } from './host-faults.ts';

const faults = ['bmcBusy', 'dataReturned', 'a fault of the future'].map((type) =>
  create(FaultSchema, { type }),
);

test('a fault is found by its type', () => {
  expect(faultOfType(faults, 'dataReturned')).toBe(faults[1]);
  expect(faultOfType(faults, 'bmcUnreachable')).toBeUndefined();
  expect(hasFault(faults, 'bmcBusy')).toBe(true);
  expect(hasFault([], 'bmcBusy')).toBe(false);
});

test('the compiler knows each fault', () => {
  expectTypeOf<'bmcUnreachable'>().toExtend<HostFault>();
  expectTypeOf<'bmcUnreachabel'>().not.toExtend<HostFault>();
  expectTypeOf(hasFault).parameter(1).toEqualTypeOf<HostFault>();
});
