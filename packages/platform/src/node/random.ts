/** Chance from the kernel's generator: fit for tokens, nonces and keys. */
import { randomBytes } from 'node:crypto';
import type { Random } from '../random.ts';

/** Bytes in one fraction; 48 bits fit exactly into a number. */
const fractionBytes = 6;
/** Bytes per request to the kernel, for calls that need `pooledMax` at most. */
const poolBytes = 4_096;
const pooledMax = 64;

/** Cryptographically strong randomness of this machine. */
export function nodeRandom(): Random {
  let pool = Buffer.alloc(0);
  const bytes = (count: number): Uint8Array => {
    if (count > pooledMax) return new Uint8Array(randomBytes(count));
    if (count > pool.length) pool = randomBytes(poolBytes);
    const taken = Uint8Array.from(pool.subarray(0, count));
    // Returned bytes may be a secret, and no other copy of them stays.
    pool.fill(0, 0, count);
    pool = pool.subarray(count);
    return taken;
  };
  const fraction = () => Buffer.from(bytes(fractionBytes)).readUIntBE(0, fractionBytes) / 2 ** 48;
  return { bytes, fraction };
}
