/** What of a Hello tells that the agent has seen data which the store lacks. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  asIncarnation,
  asRevision,
  RackStatusSchema,
  RestoredStoreSchema,
  type Revision,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { foldStoreGuard, hasSeenMore, isGuarded } from './store-guard.ts';

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

/** The rack has lost 7 revisions, 5 and 2. The agent says hello, and counts these. */
function folded(lostRevisions: Revision, isWaiting = false) {
  const rackRecord = create(wire.RackRecordSchema, {
    incarnation: position.incarnation,
    ...{ lostBefore: asRevision(5n), lostRevisions: asRevision(2n) },
  });
  const status = create(RackStatusSchema, {
    ...(isWaiting ? { restoredStore: create(RestoredStoreSchema, {}) } : {}),
  });
  const known = { ...seen, revision: asRevision(4n), lostRevisions };
  const hello = create(agent.HelloSchema, known);
  foldStoreGuard(rackRecord, status, hello, position, 0, String);
  return rackRecord;
}

test('an agent whose memory is from before an accepted loss gets the acceptance again', () => {
  expect(folded(asRevision(5)).acceptedStore).toMatchObject({ incarnation: 'i1', revision: 10n });
  expect(isGuarded(folded(asRevision(5)))).toBe(true);
  expect(folded(asRevision(7)).acceptedStore).toBeUndefined();
});

test('a loss that waits for a person is not accepted for an agent that has seen none of it', () => {
  expect(folded(asRevision(5), true).acceptedStore).toBeUndefined();
});
