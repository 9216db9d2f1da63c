/**
 * Watching a collection: every record once, then every change in order.
 *
 * Invariant: no gap. The listing says from where to follow; what cannot be followed ends the
 * stream.
 */
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import type { StateStore } from '@rackwright/store';
import { answered, isDirectlyBelow, type Kept } from '../../records/index.ts';
import { follow } from './follow.ts';
import { formatPosition, revisionOfPosition } from './position.ts';

/** The numbers that every watch of a collection gives the kinds of what it tells. */
interface Kinds {
  readonly UPDATED: 1;
  readonly DELETED: 2;
  readonly SYNCED: 3;
}

/** How a record is shown: the field of the response that holds it. */
type Show<D extends DescMessage, F> = (kept: Kept<MessageShape<D>>) => F | Promise<F>;

export interface Watched<D extends DescMessage, F> {
  readonly collection: string;
  readonly schema: D;
  /** Id of the only one that is watched; undefined: all are. */
  readonly only?: string | undefined;
  readonly kinds: Kinds;
  readonly show: Show<D, F>;
  /** In place of `show` for the listing: reads once what all that is listed is shown with. */
  readonly showListed?: () => Promise<Show<D, F>>;
  readonly gone: (name: string) => F;
}

/** What a watch tells; what was listed has no position of its own. */
type Told<F> =
  | (F & { readonly kind: Kinds['UPDATED' | 'DELETED']; readonly position: string })
  | { readonly kind: Kinds['SYNCED']; readonly position: string };

/** From the beginning, or from a position that an earlier watch has told, until `signal` aborts. */
export async function* watchCollection<D extends DescMessage, F extends object>(
  store: StateStore,
  watched: Watched<D, F>,
  position: string,
  signal: AbortSignal,
): AsyncGenerator<Told<F>, void, undefined> {
  const { collection, schema, only, kinds, show, gone } = watched;
  const isWatched = (key: string) =>
    isDirectlyBelow(collection, key) && (only === undefined || key === `${collection}.${only}`);
  const keptOf = (value: Uint8Array, revision: number) => ({
    record: fromBinary(schema, value),
    revision,
  });
  let from: number;
  if (position === '') {
    const { entries, before } = await answered(store.list(collection));
    const showListed = (await watched.showListed?.()) ?? show;
    for (const { key, value, revision } of entries) {
      if (!isWatched(key)) continue;
      const shown = await showListed(keptOf(value, revision));
      yield { ...shown, kind: kinds.UPDATED, position: '' };
    }
    yield { kind: kinds.SYNCED, position: formatPosition(store, before) };
    from = before;
  } else {
    from = revisionOfPosition(store, position);
  }
  for await (const change of follow(store, from, [collection], signal)) {
    if (!isWatched(change.key)) continue;
    const at = formatPosition(store, change.revision);
    if (change.kind === 'delete') {
      yield { ...gone(change.key.replace('.', '/')), kind: kinds.DELETED, position: at };
    } else {
      const shown = await show(keptOf(change.value, change.revision));
      yield { ...shown, kind: kinds.UPDATED, position: at };
    }
  }
}
