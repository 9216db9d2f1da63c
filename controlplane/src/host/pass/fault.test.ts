/** Faults are set and cleared by their type. */
import { create } from '@bufbuild/protobuf';
import { FaultSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bench } from '../testing/bench.ts';
import { statusOf } from '../testing/deleting.ts';
import { clearFault } from './fault.ts';

test('clearing a type removes each fault of that type, and no other', () => {
  const { faults } = statusOf(bench());
  for (const type of ['bmcBusy', 'bmcBusy', 'bmcUnreachable']) {
    faults.push(create(FaultSchema, { type }));
  }
  const status = { faults };
  clearFault({ status }, 'bmcBusy');
  expect(status.faults.map(({ type }) => type)).toEqual(['bmcUnreachable']);
});
