/** Fields decide whether a change of a host is an event; texts only say it to people. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  GivenUpCause,
  HoldKind,
  HoldScope,
  type HostStatusSchema,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { hostEventsOf } from './host-events.ts';

type Status = MessageInitShape<typeof HostStatusSchema>;

function eventsOf(before: Status, after: Status) {
  const record = (status: Status) => create(wire.HostRecordSchema, { host: { status } });
  const change = { segments: ['hosts', 'h1'], before: record(before), after: record(after) };
  return hostEventsOf(change).contents.map((content) => content.case);
}

const givenUp = GivenUpCause.TOO_MANY_FAILURES;
const failed = { failures: 3, givenUp, givenUpReason: '3 attempts in a row failed' };
const paused = { failures: 2, nextAttemptTime: timestampFromMs(1) };

test.each<[string, Status['backoff'], Status['backoff'], number]>([
  ['that pauses', undefined, paused, 0],
  ['that is given up', paused, failed, 1],
  ['whose reason is worded otherwise', failed, { ...failed, givenUpReason: 'other' }, 0],
  ['that is given up again', failed, { ...failed, failures: 4 }, 1],
  ['that a person looks at first', failed, { ...failed, givenUp: GivenUpCause.REVIEW }, 1],
])('a goal %s: as many events as it was given up', (_name, before, after, count) => {
  const of = (backoff: Status['backoff']) => (backoff === undefined ? {} : { backoff });
  expect(eventsOf(of(before), of(after))).toEqual(Array(count).fill('goalGivenUp'));
});

test('holds of the system are told apart by kind and operation, those of people by name', () => {
  const hold = { scope: HoldScope.WORK, by: 'system', reason: 'listed', operationId: 'o1' };
  const ofSystem = { ...hold, kind: HoldKind.UNKNOWN_WORK };
  const holds = (...each: (typeof hold)[]) => ({ holds: each });
  expect(eventsOf(holds(ofSystem), holds({ ...ofSystem, reason: 'other' }))).toEqual([]);
  const moved = ['holdLifted', 'holdPlaced'];
  expect(eventsOf(holds(ofSystem), holds({ ...ofSystem, operationId: 'o2' }))).toEqual(moved);
  const ofPerson = { ...hold, by: 'user:ann', operationId: '' };
  expect(eventsOf(holds(ofPerson), holds({ ...ofPerson, reason: 'other' }))).toEqual(moved);
});
