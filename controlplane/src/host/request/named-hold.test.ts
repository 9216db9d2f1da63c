/** Which hold a person's words mean. */
import { create } from '@bufbuild/protobuf';
import { actors, HoldKind, HoldSchema, HoldScope } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { isNamed, isSetAgain } from './named-hold.ts';

const reason = 'a look';
const mine = { scope: HoldScope.WORK, by: 'user:ann', reason };
const made = (changes = {}) => create(HoldSchema, { ...mine, ...changes });

test('a person sets a hold again with its scope and its very words', () => {
  expect(isSetAgain(made(), mine)).toBe(true);
  expect(isSetAgain(made(), { ...mine, reason: 'a longer look' })).toBe(false);
  expect(isSetAgain(made(), { ...mine, scope: HoldScope.POWER })).toBe(false);
  expect(isSetAgain(made(), { ...mine, by: 'user:bob' })).toBe(false);
});

test('a person cannot set a hold of the system again, whatever the text', () => {
  const kinds = [HoldKind.FENCE_PENDING, HoldKind.RESTORED, HoldKind.UNKNOWN_WORK];
  for (const kind of kinds) expect(isSetAgain(made({ kind }), mine)).toBe(false);
});

test('a hold is named by its text, a fence also by its kind, and either by an empty text', () => {
  const fence = made({ by: actors.system, kind: HoldKind.FENCE_PENDING, reason: 'in other words' });
  expect(isNamed(fence, 'fencePending')).toBe(true);
  expect(isNamed(fence, 'in other words')).toBe(true);
  expect(isNamed(made(), 'fencePending')).toBe(false);
  expect(isNamed(made({ reason: 'fencePending: mine' }), 'fencePending')).toBe(false);
  expect(isNamed(made(), reason)).toBe(true);
  expect(isNamed(made(), '')).toBe(true);
});
