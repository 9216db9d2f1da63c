/** How store drivers differ in a backup. A driver without a row does not compile. */
import type { StoreDriver } from '../config.ts';

export interface StoreInBackup {
  /** The archive holds the state; otherwise the store keeps snapshots of its own. */
  readonly holdsState: boolean;
  /** What a person does after `backup`, and after `restore`. */
  readonly afterBackup: readonly string[];
  readonly afterRestore: readonly string[];
}

export const storesInBackup: Readonly<Record<StoreDriver, StoreInBackup>> = {
  sqlite: { holdsState: true, afterBackup: [], afterRestore: [] },
  nats: {
    holdsState: false,
    afterBackup: [
      'State is not in it: copy that by `nats stream backup` of each stream of the bucket.',
    ],
    afterRestore: [
      'Put the streams back by `nats stream restore`, and start once with --restored.',
    ],
  },
};

export function isStoreDriver(value: unknown): value is StoreDriver {
  return typeof value === 'string' && Object.hasOwn(storesInBackup, value);
}
