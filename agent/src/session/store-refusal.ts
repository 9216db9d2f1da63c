/** Whether a store is the one that this agent has seen, not an older copy (DESIGN §10). Pure. */

/** What is known of a store: its incarnation and a revision. */
export interface StorePosition {
  readonly incarnation: string;
  readonly revision: bigint;
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
  if (store.revision >= seen.revision) return '';
  return (
    `the control plane's store is at revision ${store.revision}, behind ${seen.revision}, which ` +
    'this agent has seen'
  );
}
