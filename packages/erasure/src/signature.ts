/**
 * ECDSA over P-256 with SHA-256, DER-encoded: the form that `openssl dgst -sha256 -verify` and
 * `-sign` speak. Keys are PEM texts.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';

/** A key that is not on P-256, or no key at all. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}

/** Detached signature over the exact bytes, DER. Throws `KeyError`. */
export function signBytes(bytes: Uint8Array, privateKeyPem: string): Uint8Array {
  const key = privateKeyOf(privateKeyPem);
  return sign('sha256', bytes, { key, dsaEncoding: 'der' });
}

/** Whether the signature is over exactly these bytes by this key. Throws `KeyError`. */
export function signatureFits(
  bytes: Uint8Array,
  signature: Uint8Array,
  publicKeyPem: string,
): boolean {
  const key = publicKeyOfPem(publicKeyPem);
  return verify('sha256', bytes, { key, dsaEncoding: 'der' }, signature);
}

/** The public half of a private key, as SubjectPublicKeyInfo in PEM. */
export function publicKeyOf(privateKeyPem: string): string {
  const key = onCurve(() => createPrivateKey(privateKeyPem), 'private');
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}

/** PEM of a public key given as SubjectPublicKeyInfo in DER. Throws `KeyError`. */
export function pemOfPublicKey(der: Uint8Array): string {
  return pemOfDer(Buffer.from(der).toString('base64'));
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Keys that are remembered of each kind; reading one costs more than a signature. */
const keysMax = 64;

const privateKeyOf = remembered((pem) => onCurve(() => createPrivateKey(pem), 'private'));
const publicKeyOfPem = remembered((pem) => onCurve(() => createPublicKey(pem), 'public'));
const pemOfDer = remembered((base64) => {
  const key = Buffer.from(base64, 'base64');
  const read = () => createPublicKey({ key, format: 'der', type: 'spki' });
  return onCurve(read, 'public').export({ type: 'spki', format: 'pem' }).toString();
});

function remembered<T>(of: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = of(text);
    if (known.size >= keysMax) known.clear();
    known.set(text, made);
    return made;
  };
}

function onCurve(read: () => KeyObject, which: string): KeyObject {
  let key: KeyObject;
  try {
    key = read();
  } catch (cause) {
    throw new KeyError(`not a ${which} key`, { cause });
  }
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType !== 'ec' || curve !== 'prime256v1') {
    throw new KeyError(`a ${which} key on P-256 is needed, not ${curve ?? key.asymmetricKeyType}`);
  }
  return key;
}
