/**
 * The position of a follower of events: a revision for each collection, because each is followed by
 * itself. Clients see one opaque text.
 */
import { asIncarnation, type Incarnation } from '@rackwright/messages';
import type { StateStore, StoreRevision } from '@rackwright/store';
import { type EventCollection, eventCollections, isEventCollection } from './derive/derive.ts';

/** For a collection without a revision here, everything up to `since` has been reported. */
export interface Positions {
  readonly incarnation: Incarnation;
  /** For collections without a revision of their own. */
  readonly since: StoreRevision;
  readonly revisions: Readonly<Partial<Record<EventCollection, StoreRevision>>>;
}

/** The start position of a follower that gets everything after this revision. */
export function positionsFrom(
  { incarnation }: Pick<StateStore, 'incarnation'>,
  since: StoreRevision,
): Positions {
  return { incarnation, since, revisions: {} };
}

export function revisionIn(positions: Positions, collection: EventCollection): StoreRevision {
  return positions.revisions[collection] ?? positions.since;
}

/** The same, with everything of this collection up to `revision` reported. */
export function advancePositions(
  positions: Positions,
  collection: EventCollection,
  revision: StoreRevision,
): Positions {
  return { ...positions, revisions: { ...positions.revisions, [collection]: revision } };
}

/** "INCARNATION.SINCE.COLLECTION-REVISION…" in the alphabet of positions. */
export function formatPositions({ incarnation, since, revisions }: Positions): string {
  const parts = eventCollections.flatMap((collection) => {
    const revision = revisions[collection];
    return revision === undefined || revision === since ? [] : [`${collection}-${revision}`];
  });
  return [incarnation, since, ...parts].join('.');
}

const shape = /^([A-Za-z0-9_-]{1,64})\.(\d{1,16})((?:\.[A-Za-z]{1,32}-\d{1,16}){0,32})$/;

/** Undefined for an invalid position. A collection that no longer has events is dropped. */
export function parsePositions(text: string): Positions | undefined {
  const [, incarnation, since, rest = ''] = shape.exec(text) ?? [];
  if (incarnation === undefined || since === undefined) return undefined;
  const revisions: Partial<Record<EventCollection, StoreRevision>> = {};
  for (const part of rest.split('.').slice(1)) {
    const [collection = '', revision] = part.split('-');
    if (isEventCollection(collection)) revisions[collection] = Number(revision);
  }
  return { incarnation: asIncarnation(incarnation), since: Number(since), revisions };
}
