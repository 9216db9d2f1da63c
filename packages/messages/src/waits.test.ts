import { create } from '@bufbuild/protobuf';
import { expect, expectTypeOf, test } from 'vitest';
import { WaitingSchema } from './gen/rackwright/v1/run_pb.ts';
import {
  type HostWait,
  hostWaitOf,
  hostWaits,
  type PendingWait,
  pendingWaitOf,
  pendingWaits,
} from './waits.ts';

const waiting = (reason: string) => create(WaitingSchema, { reason });

test.each(hostWaits)('a run that waits for %s waits on its host', (reason) => {
  expect(hostWaitOf(waiting(reason))).toBe(reason);
  expect(pendingWaitOf(waiting(reason))).toBeUndefined();
});

test.each(pendingWaits)('a run that waits for %s has no host yet', (reason) => {
  expect(pendingWaitOf(waiting(reason))).toBe(reason);
  expect(hostWaitOf(waiting(reason))).toBeUndefined();
});

test.each(['', 'moonlight', 'Hold', 'constructor'])('"%s" is no wait of this version', (reason) => {
  expect(hostWaitOf(waiting(reason))).toBeUndefined();
  expect(pendingWaitOf(waiting(reason))).toBeUndefined();
});

test('no wait is none', () => {
  expect(hostWaitOf(undefined)).toBeUndefined();
});

test('the compiler knows each word', () => {
  expectTypeOf(hostWaitOf(waiting('hold'))).toEqualTypeOf<HostWait | undefined>();
  expectTypeOf<'hodl'>().not.toExtend<HostWait | PendingWait>();
  expectTypeOf(pendingWaitOf(waiting('run'))).toEqualTypeOf<PendingWait | undefined>();
});
