/**
 * Watching a collection: every record once, then every change in order.
 *
 * Invariants:
 * 1. There is no gap. The listing says from where to follow; if the store cannot follow from there,
 *    the stream ends.
 * 2. A record that is filtered out is reported as deleted once, if it was reported before or may
 *    have been: a resumed watch does not know.
 * 3. A record that cannot be decoded is skipped; the loop that works with it logs it.
 * 4. No record goes back: a store may list values newer than the position of the listing, and the
 *    changes up to them are skipped.
 */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import type { Change, Entry, StateStore, StoreRevision } from '@rackwright/store';
import {
  isDirectlyBelow,
  type KeptRecord,
  orUnavailable,
  readableRecordOf,
} from '../records/index.ts';
import { follow } from './follow.ts';
import { formatPosition, revisionOfPosition } from './position.ts';

/** The enum values of every watch for the kinds of its responses. */
interface Kinds {
  readonly UPDATED: 1;
  readonly DELETED: 2;
  readonly SYNCED: 3;
}

/** The response field that shows a record; undefined: the record is filtered out. */
type Show<D extends DescMessage, F> = (
  kept: KeptRecord<MessageShape<D>>,
) => F | undefined | Promise<F | undefined>;

export interface WatchedCollection<D extends DescMessage, F> {
  readonly collection: string;
  readonly schema: D;
  /** The id of the only watched record; undefined: all are watched. */
  readonly only?: string | undefined;
  readonly kinds: Kinds;
  readonly show: Show<D, F>;
  /** Replaces `show` for the listing: reads once the data that all listed records need. */
  readonly showListed?: () => Promise<Show<D, F>>;
  readonly gone: (name: string) => F;
}

/** One response of a watch; a listed record has no position of its own. */
type SentItem<F> =
  | (F & { readonly kind: Kinds['UPDATED' | 'DELETED']; readonly position: string })
  | { readonly kind: Kinds['SYNCED']; readonly position: string };

/** From the beginning, or from the position of an earlier watch, until `signal` aborts. */
export async function* watchCollection<D extends DescMessage, F extends object>(
  store: StateStore,
  watched: WatchedCollection<D, F>,
  position: string,
  signal: AbortSignal,
): AsyncGenerator<SentItem<F>, void, undefined> {
  const { collection, schema, only, kinds, show, gone } = watched;
  const isWatched = (key: string) =>
    isDirectlyBelow(collection, key) && (only === undefined || key === `${collection}.${only}`);
  const shownOf = async (entry: Entry, by: Show<D, F>) => {
    const record = readableRecordOf({ store }, schema, entry);
    return record === undefined ? 'unreadable' : await by({ record, revision: entry.revision });
  };
  const sent = new Set<string>();
  const left = new Set<string>();
  const ahead = new Map<string, StoreRevision>();
  const isSkipped = ({ key, revision }: Change) =>
    !isWatched(key) || revision <= (ahead.get(key) ?? 0);
  let from: number;
  if (position === '') {
    const { entries, before } = await orUnavailable(store.list(collection));
    const showListed = (await watched.showListed?.()) ?? show;
    for (const entry of entries.filter(({ key }) => isWatched(key))) {
      if (entry.revision > before) ahead.set(entry.key, entry.revision);
      const shown = await shownOf(entry, showListed);
      if (shown === undefined || shown === 'unreadable') continue;
      sent.add(entry.key);
      yield { ...shown, kind: kinds.UPDATED, position: '' };
    }
    yield { kind: kinds.SYNCED, position: formatPosition(store, before) };
    from = before;
  } else {
    from = revisionOfPosition(store, position);
  }
  for await (const change of follow(store, from, [collection], signal)) {
    if (isSkipped(change)) continue;
    const { key, revision } = change;
    const at = formatPosition(store, revision);
    const shown = change.kind === 'put' ? await shownOf(change, show) : undefined;
    if (shown === 'unreadable') continue;
    if (shown !== undefined) {
      sent.add(key);
      left.delete(key);
      yield { ...shown, kind: kinds.UPDATED, position: at };
      continue;
    }
    const mayBeKnown = sent.delete(key) || (position !== '' && !left.has(key));
    if (change.kind === 'put' && !mayBeKnown) continue;
    left.add(key);
    yield { ...gone(key.replace('.', '/')), kind: kinds.DELETED, position: at };
  }
}
