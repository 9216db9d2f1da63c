/** Events whose delivery to a sink was given up: stored, shown, and delivered again on request. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Event, type EventId, type SinkUid, store as wire } from '@rackwright/messages';
import { type Entry, LIST_PAGE_MAX, type StateStore, storeKey } from '@rackwright/store';
import { listingsOf, orUnavailable, sharedRecordOf, writeRecord } from '../../records/index.ts';

const schema = wire.DeadLetterRecordSchema;

/** Of one sink. At this number nothing more is given up: the sink stops, and says so. */
export const deadLettersMax = 1_000;

/** The prefix of the dead letters of a sink. */
export function deadLettersBelow(sinkUid: SinkUid): string {
  return storeKey('deadLetters', sinkUid);
}

export function deadLetterKey(sinkUid: SinkUid, eventId: EventId): string {
  return storeKey('deadLetters', sinkUid, eventId);
}

/** All of a sink, at most one store page beyond the bound. */
export async function deadLettersOf(
  store: Pick<StateStore, 'list'>,
  sinkUid: SinkUid,
): Promise<readonly Entry[]> {
  const list = (page: Parameters<StateStore['list']>[1]) =>
    orUnavailable(store.list(deadLettersBelow(sinkUid), page));
  const entries: Entry[] = [];
  for await (const page of listingsOf(list, { limit: LIST_PAGE_MAX })) {
    entries.push(...page.entries);
    if (entries.length > deadLettersMax) break;
  }
  return entries;
}

export function deadLetterOf(store: StateStore, entry: Entry): wire.DeadLetterRecord {
  return sharedRecordOf(store, schema, entry);
}

/** Why the delivery of an event was given up. */
export interface GivenUpDelivery {
  readonly event: Event;
  readonly attempts: number;
  readonly problem: string;
  readonly atMs: number;
}

/** Stores an event as given up, once. False: there is no room. Throws `unavailable`. */
export async function storeDeadLetter(
  store: StateStore,
  sinkUid: SinkUid,
  delivery: GivenUpDelivery,
): Promise<boolean> {
  if ((await deadLettersOf(store, sinkUid)).length >= deadLettersMax) return false;
  const { event, attempts, problem, atMs } = delivery;
  const record = create(schema, { event, attempts, problem, time: timestampFromMs(atMs) });
  // A conflict means that it is already stored, as after a crash.
  await writeRecord({ store }, schema, deadLetterKey(sinkUid, event.id), record, 'absent');
  return true;
}
