/** The texts follow from the type of a fault and its kind of clearing, and decide nothing. */
import { create } from '@bufbuild/protobuf';
import { FaultClearing, FaultSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { clearingText, isClearedByAnyRun } from './fault-clearing.ts';

const { ANY_RUN, BY_TYPE, UNSPECIFIED } = FaultClearing;

test.each([
  ['reimageFailed', BY_TYPE, 'a reimage or release run that succeeds'],
  ['reimageFailed', ANY_RUN, 'the next run that succeeds, whatever it does'],
  ['bmcBusy', BY_TYPE, 'the BMC’s next answer'],
  ['bmcProtocol', BY_TYPE, 'the next call that works'],
] as const)('%s, %i: is cleared by %s', (type, clearing, text) => {
  expect(clearingText(type, clearing)).toBe(text);
});

test('the kind of clearing alone says whether any run clears a fault', () => {
  const clearedBy = clearingText('reimageFailed', ANY_RUN);
  const isCleared = (clearing: FaultClearing) =>
    isClearedByAnyRun(create(FaultSchema, { clearing, clearedBy }));
  expect([ANY_RUN, BY_TYPE, UNSPECIFIED].map(isCleared)).toEqual([true, false, false]);
});
