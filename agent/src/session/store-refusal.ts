/** Whether a store is the one that this agent has seen, not an older copy (DESIGN §10). Pure. */
import {
  agent,
  asIncarnation,
  type Incarnation,
  noRevision,
  type Revision,
  type StoreRefusal,
} from '@rackwright/messages';

/** A store's position: its incarnation, a revision, and the revisions that were lost before it. */
export interface KnownStorePosition {
  readonly incarnation: Incarnation;
  readonly revision: Revision;
  /**
   * Revisions that accepted restores have lost. `revision + lostRevisions` never falls: a lower sum
   * shows an older copy.
   */
  readonly lostRevisions: Revision;
}

/** Why nothing destructive is done for `store` after `seen`; undefined: it is. */
export function storeRefusal(
  store: KnownStorePosition,
  seen: KnownStorePosition | undefined,
): StoreRefusal | undefined {
  if (seen === undefined) return undefined;
  if (store.incarnation !== seen.incarnation) {
    return {
      kind: agent.StoreRefusalKind.OTHER_INCARNATION,
      text:
        `the control plane's store is another one (${store.incarnation}) than the one this ` +
        `agent has worked for (${seen.incarnation})`,
    };
  }
  const behind = seen.revision + seen.lostRevisions - store.revision - store.lostRevisions;
  if (behind <= 0n) return undefined;
  return {
    kind: agent.StoreRefusalKind.BEHIND,
    text:
      `the control plane's store is at revision ${store.revision}, ${behind} behind what this ` +
      'agent has seen',
  };
}

/** What Hello tells of the store: what was seen of it, and the refusal. */
export function storeInHello(
  seen: KnownStorePosition | undefined,
  refusal: StoreRefusal | undefined,
): Pick<agent.Hello, keyof KnownStorePosition | 'storeRefusal' | 'storeRefused'> {
  return {
    incarnation: seen?.incarnation ?? asIncarnation(''),
    revision: seen?.revision ?? noRevision,
    lostRevisions: seen?.lostRevisions ?? noRevision,
    storeRefusal: refusal?.kind ?? agent.StoreRefusalKind.UNSPECIFIED,
    storeRefused: refusal?.text ?? '',
  };
}
