/**
 * The events of one record, from its last change backwards, as far as the store has them: the same
 * ones, under the same ids, that a follower got.
 */
import { GapReason } from '@rackwright/messages';
import type { Change, KeyHistory, StateStore, StoreRevision } from '@rackwright/store';
import { orUnavailable } from '../records/index.ts';
import { type EventCollection, eventsOf, gapOf, type TracedEvent } from './derive/derive.ts';

/** Changes that are read at once: each is decoded, and other calls run in between. */
const readAtOnce = 64;

/** One change with its events, newest first; there may be none. */
export interface PastChange {
  readonly revision: StoreRevision;
  readonly events: readonly TracedEvent[];
}

/**
 * From the change with revision `from`, or the last one, backwards. Ends with a gap where the store
 * no longer has the earlier changes. Rejects as the store does.
 */
export async function* eventsBack(
  store: Pick<StateStore, 'incarnation' | 'historyBackwards'>,
  collection: EventCollection,
  key: string,
  from: StoreRevision | undefined,
): AsyncGenerator<PastChange, void, undefined> {
  let after: Change | undefined;
  for await (const change of changesBack(store, key, from)) {
    if (change.kind === 'change') {
      if (after !== undefined) yield eventsUntil(store, collection, after, change.change);
      after = change.change;
    } else if (after !== undefined) {
      yield eventsUntil(store, collection, after, change.before === 'gone' ? 'gone' : undefined);
    } else if (from !== undefined) {
      // The store had it when the earlier page ended before it.
      const gap = gapOf(store.incarnation, { key, revision: from }, GapReason.COMPACTED);
      yield { revision: from, events: [gap] };
    }
  }
}

type Back =
  | { readonly kind: 'change'; readonly change: Change }
  | { readonly kind: 'end'; readonly before: KeyHistory['before']['kind'] };

async function* changesBack(
  store: Pick<StateStore, 'historyBackwards'>,
  key: string,
  from: StoreRevision | undefined,
): AsyncGenerator<Back, void, undefined> {
  for (let next = from; ; ) {
    const { changes, before } = await orUnavailable(store.historyBackwards(key, readAtOnce, next));
    for (const change of changes) yield { kind: 'change', change };
    if (before.kind !== 'more') {
      yield { kind: 'end', before: before.kind };
      return;
    }
    next = before.from;
  }
}

function eventsUntil(
  { incarnation }: Pick<StateStore, 'incarnation'>,
  collection: EventCollection,
  change: Change,
  before: Change | 'gone' | undefined,
): PastChange {
  const { revision } = change;
  if (before === 'gone') {
    return { revision, events: [gapOf(incarnation, change, GapReason.COMPACTED)] };
  }
  const was = before === undefined || before.kind === 'delete' ? 'absent' : before;
  return { revision, events: eventsOf(incarnation, collection, change, was).toReversed() };
}
