/** The public keys that certificates may be signed by, each with the time it may sign in. Pure. */
import { KeyError, sha256Hex, signatureFits } from './signature.ts';

export interface TrustedKey {
  /** SubjectPublicKeyInfo in PEM. */
  readonly pem: string;
  /** ISO 8601, UTC; it signs nothing that ended before. Unset: no limit. */
  readonly notBefore?: string;
  /** ISO 8601, UTC; it signs nothing that ended later. Unset: no limit. */
  readonly notAfter?: string;
}

/** What `trust.pem` may hold: keys one after another, each with lines about it before it. */
export type Trust = string | readonly TrustedKey[];

export type SignatureCheck =
  | { readonly kind: 'fits' }
  | { readonly kind: 'expired'; readonly message: string }
  | { readonly kind: 'unusable'; readonly message: string }
  | { readonly kind: 'foreign'; readonly message: string };

const keyBlock = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g;

/**
 * Reads one or several keys in PEM. A line "not-before: TIME" or "not-after: TIME" before a key
 * limits it. Text without a key yields one unusable key, so that it is reported.
 */
export function trustedKeys(trust: Trust): readonly TrustedKey[] {
  if (typeof trust !== 'string') return trust;
  let end = 0;
  const keys = [...trust.matchAll(keyBlock)].map(({ index, 0: pem }): TrustedKey => {
    const about = trust.slice(end, index);
    end = index + pem.length;
    const notBefore = limit(about, 'not-before');
    const notAfter = limit(about, 'not-after');
    return {
      pem: `${pem}\n`,
      ...(notBefore === undefined ? {} : { notBefore }),
      ...(notAfter === undefined ? {} : { notAfter }),
    };
  });
  return keys.length === 0 ? [{ pem: trust }] : keys;
}

/** Whether one of the keys has signed these bytes, and might at that time (ISO 8601). */
export function checkTrust(
  bytes: Uint8Array,
  signature: Uint8Array,
  trust: Trust,
  signedAt: string | undefined,
): SignatureCheck {
  const keys = trustedKeys(trust);
  let unusable: SignatureCheck | undefined;
  for (const key of keys) {
    try {
      if (!signatureFits(bytes, signature, key.pem)) continue;
    } catch (error) {
      if (!(error instanceof KeyError)) throw error;
      unusable ??= { kind: 'unusable', message: error.message };
      continue;
    }
    return checkTime(key, signedAt);
  }
  if (unusable !== undefined) return unusable;
  const by = keys.length === 1 ? 'this key' : `one of these ${keys.length} keys`;
  const digest = sha256Hex(bytes);
  const message = `the signature is not over this statement (SHA-256 ${digest}) by ${by}`;
  return { kind: 'foreign', message };
}

function checkTime({ notBefore, notAfter }: TrustedKey, signedAt: string | undefined) {
  if (signedAt === undefined) return { kind: 'fits' } as const;
  const at = Date.parse(signedAt);
  // A limit that is no time lets nothing fit.
  const isEarly = notBefore !== undefined && !(at >= Date.parse(notBefore));
  const isLate = notAfter !== undefined && !(at <= Date.parse(notAfter));
  if (!isEarly && !isLate) return { kind: 'fits' } as const;
  const bound = isEarly ? `not before ${notBefore}` : `not after ${notAfter}`;
  return { kind: 'expired', message: `the key is valid ${bound}, this is of ${signedAt}` } as const;
}

/**
 * Accepts a limit in several spellings. A limit that is no time makes its key fit nothing, and the
 * message shows it.
 */
function limit(about: string, name: string): string | undefined {
  const word = name.replace('-', '-?');
  return new RegExp(`\\b${word}\\b[ \\t]*[:=]?[ \\t]*(.*?)\\s*$`, 'im').exec(about)?.[1];
}
