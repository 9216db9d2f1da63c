/** Chance from the kernel's generator: fit for tokens, nonces and keys. */
import { randomBytes } from 'node:crypto';
import type { Random } from '../random.ts';

/** Bytes in one fraction; 48 bits fit exactly into a number. */
const fractionBytes = 6;

/** Cryptographically strong randomness of this machine. */
export function nodeRandom(): Random {
  return {
    bytes: (count) => new Uint8Array(randomBytes(count)),
    fraction: () => randomBytes(fractionBytes).readUIntBE(0, fractionBytes) / 2 ** 48,
  };
}
