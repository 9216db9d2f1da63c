/** Verifies the signature of a certificate in the browser itself, with the key that is trusted. */
import { pemBytes, rawSignature } from '../logic/statement.ts';

export type CheckedSignature =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid' }
  /** The browser cannot: it has no cryptography on a page without TLS. */
  | { readonly kind: 'impossible' };

/** Whether `signature` (ECDSA P-256, SHA-256, DER) over `statement` is of the key `pem`. */
export async function verifyStatement(
  statement: Uint8Array,
  signature: Uint8Array,
  pem: string,
): Promise<CheckedSignature> {
  if (!isSecureContext) return { kind: 'impossible' };
  const raw = rawSignature(signature);
  if (raw === undefined) return { kind: 'invalid' };
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  try {
    const key = await crypto.subtle.importKey('spki', pemBytes(pem), algorithm, false, ['verify']);
    const how = { name: 'ECDSA', hash: 'SHA-256' };
    const bytes = Uint8Array.from(statement);
    const isValid = await crypto.subtle.verify(how, key, raw, bytes);
    return { kind: isValid ? 'valid' : 'invalid' };
  } catch {
    // The key or the signature cannot be read: nothing is verified.
    return { kind: 'invalid' };
  }
}
