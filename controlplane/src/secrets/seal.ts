/**
 * AES-256-GCM for secrets: nonce, ciphertext and tag in one piece. Pure apart from the nonce, which
 * is given. The purpose is authenticated, but not part of the piece.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';

const cipherName = 'aes-256-gcm';
export const keyBytes = 32;
export const nonceBytes = 12;
const tagBytes = 16;

/** Seals `plain` for `purpose`; the nonce must never be used twice with a key. */
export function sealUnder(
  key: Uint8Array,
  nonce: Uint8Array,
  purpose: string,
  plain: Uint8Array,
): Uint8Array {
  const cipher = createCipheriv(cipherName, key, nonce);
  cipher.setAAD(Buffer.from(purpose));
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
  return new Uint8Array(Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]));
}

/** The opened data; undefined for another key, another purpose, or any changed bit. */
export function openUnder(
  key: Uint8Array,
  purpose: string,
  sealed: Uint8Array,
): Uint8Array | undefined {
  if (sealed.length < nonceBytes + tagBytes) return undefined;
  const nonce = sealed.subarray(0, nonceBytes);
  const ciphertext = sealed.subarray(nonceBytes, sealed.length - tagBytes);
  const decipher = createDecipheriv(cipherName, key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(purpose));
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
  } catch {
    // The tag does not match: another key, another purpose, or changed bytes. Node says no more.
    return undefined;
  }
}
