/**
 * How far a follower of the events has come: a revision for each collection, because each is
 * followed by itself. Written as one opaque text for clients.
 */
import type { Revision, StateStore } from '@rackwright/store';
import { type EventCollection, eventCollections, isEventCollection } from './derive/derive.ts';

/** One that a collection lacks: everything of it has been told up to `since`. */
export interface Positions {
  readonly incarnation: string;
  /** Of collections that have no revision of their own. */
  readonly since: Revision;
  readonly revisions: Readonly<Partial<Record<EventCollection, Revision>>>;
}

/** Where a follower begins that shall be told of all that comes after this revision. */
export function positionsFrom(
  { incarnation }: Pick<StateStore, 'incarnation'>,
  since: Revision,
): Positions {
  return { incarnation, since, revisions: {} };
}

export function revisionIn(positions: Positions, collection: EventCollection): Revision {
  return positions.revisions[collection] ?? positions.since;
}

/** The same, but of this collection everything has been told up to `revision`. */
export function advanced(
  positions: Positions,
  collection: EventCollection,
  revision: Revision,
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

/** Undefined for what is no position. A collection that has no events any more is dropped. */
export function parsePositions(text: string): Positions | undefined {
  const [, incarnation, since, rest = ''] = shape.exec(text) ?? [];
  if (incarnation === undefined || since === undefined) return undefined;
  const revisions: Partial<Record<EventCollection, Revision>> = {};
  for (const part of rest.split('.').slice(1)) {
    const [collection = '', revision] = part.split('-');
    if (isEventCollection(collection)) revisions[collection] = Number(revision);
  }
  return { incarnation, since: Number(since), revisions };
}
