/**
 * Sealing and opening credentials as the production control plane does, under a key of the rack.
 */
import { createSecrets, type Secrets } from '@rackwright/controlplane';
import type { Random } from '@rackwright/platform';

const keyBytes = 32;

/** The same key for every life of every replica, as the key file is. */
export function simSecrets(random: Random): Secrets {
  return createSecrets([new Uint8Array(keyBytes).fill(7)], thrifty(random));
}

const drawnBytes = 12;

/** Draws few numbers for many bytes: how much a sealing takes changes no seed's story. */
function thrifty(random: Random): Random {
  return {
    fraction: () => random.fraction(),
    bytes: (count) => {
      const drawn = random.bytes(drawnBytes);
      return Uint8Array.from({ length: count }, (_, index) => drawn[index % drawnBytes] ?? 0);
    },
  };
}
