/**
 * Sealing and opening credentials as the production control plane does, under a key of the rack.
 */
import { createSecrets, type Secrets } from '@rackwright/controlplane';
import type { Random } from '@rackwright/platform';

const keyBytes = 32;

/** The same key for every life of every replica, as the key file is. */
export function simSecrets(random: Random): Secrets {
  return createSecrets(new Uint8Array(keyBytes).fill(7), random);
}
