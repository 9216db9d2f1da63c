/** What of a Hello tells that the agent has seen data which the store lacks. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, asIncarnation, asRevision, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { hasSeenMore } from './store-guard.ts';

const position = { incarnation: asIncarnation('i1'), revision: asRevision(10) };
const record = create(wire.RackRecordSchema, {});
const seenMore = (hello: MessageInitShape<typeof agent.HelloSchema>) =>
  hasSeenMore(create(agent.HelloSchema, hello), position, record);

const { BEHIND, OTHER_INCARNATION, UNSPECIFIED } = agent.StoreRefusalKind;
const seen = { incarnation: asIncarnation('i1'), revision: asRevision(10) };

test('an agent that has seen nothing, or as much as the store has, has not seen more', () => {
  expect(seenMore({})).toBe(false);
  expect(seenMore(seen)).toBe(false);
});

test('a higher revision, or another incarnation, is more', () => {
  expect(seenMore({ ...seen, revision: asRevision(11) })).toBe(true);
  expect(seenMore({ ...seen, incarnation: asIncarnation('i2') })).toBe(true);
});

test.each([
  ['kind without a text', BEHIND, ''],
  ['kind with a text', OTHER_INCARNATION, 'another store'],
  ['kind that is not known here', 99 as agent.StoreRefusalKind, ''],
  ['text of an older agent, without a kind', UNSPECIFIED, 'another store'],
])('a refusal by the agent counts as more: a %s', (_what, storeRefusal, storeRefused) => {
  expect(seenMore({ ...seen, storeRefusal, storeRefused })).toBe(true);
});
