/** Fingerprints: always SHA-256, always lower-case hex. */
import { createHash, type KeyObject } from 'node:crypto';

/** SHA-256 of `bytes`. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** SHA-256 of a public key's SubjectPublicKeyInfo (DER). */
export function publicKeySha256(key: KeyObject): string {
  return sha256Hex(key.export({ type: 'spki', format: 'der' }));
}
