/** What counts as a refusal of a store (S1, S2). */
import { expect, test } from 'vitest';
import { StoreRefusalKind } from './gen/rackwright/agent/v1/session_pb.ts';
import { storeRefusalOf } from './store-refusal.ts';

const { BEHIND, OTHER_INCARNATION, UNSPECIFIED } = StoreRefusalKind;

test('without a kind and a text there is no refusal', () => {
  expect(storeRefusalOf(UNSPECIFIED, '')).toBeUndefined();
});

test.each([BEHIND, OTHER_INCARNATION, 99 as StoreRefusalKind])(
  'S1: kind %s refuses, with a text for people',
  (kind) => {
    expect(storeRefusalOf(kind, 'why')).toEqual({ kind, text: 'why' });
    expect(storeRefusalOf(kind, '')).toEqual({ kind, text: 'the store is refused' });
  },
);

test('S2: a text without a kind refuses', () => {
  expect(storeRefusalOf(UNSPECIFIED, 'why')).toEqual({ kind: UNSPECIFIED, text: 'why' });
});
