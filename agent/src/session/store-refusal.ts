/** Whether a store is the one that this agent has seen, not an older copy (DESIGN §10). Pure. */
import type { Revision } from '@rackwright/messages';

/** A store's position: its incarnation, a revision, and the revisions that were lost before it. */
export interface StorePosition {
  readonly incarnation: string;
  readonly revision: Revision;
  /** Added to the revision they make a sum that never falls, also after an accepted restore. */
  readonly lostRevisions: Revision;
}

/** Why nothing destructive is done for `store` after `seen`; empty: it is. */
export function refusalOf(store: StorePosition, seen: StorePosition | undefined): string {
  if (seen === undefined) return '';
  if (store.incarnation !== seen.incarnation) {
    return (
      `the control plane's store is another one (${store.incarnation}) than the one this agent ` +
      `has worked for (${seen.incarnation})`
    );
  }
  const behind = seen.revision + seen.lostRevisions - store.revision - store.lostRevisions;
  if (behind <= 0n) return '';
  return (
    `the control plane's store is at revision ${store.revision}, ${behind} behind what this ` +
    'agent has seen'
  );
}
