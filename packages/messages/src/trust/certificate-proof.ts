/**
 * The proof that goes with a request for a certificate: the requester holds the private key. Agent
 * and control plane share this module so that they sign and check the same bytes.
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

const label = Buffer.from('rackwright-issue-certificate\0');

/** Random bytes in a request; fewer are refused. */
export const proofNonceBytesMin = 16;
/** More are refused. */
export const proofNonceBytesMax = 64;

/** ECDSA-SHA256 (DER) over label, nonce and public key (SPKI, DER). */
export function signCertificateProof(
  privateKey: KeyObject,
  publicKeyDer: Uint8Array,
  nonce: Uint8Array,
): Uint8Array {
  return sign('sha256', Buffer.concat([label, nonce, publicKeyDer]), privateKey);
}

/** Whether the holder of the private key made `signature`. */
export function checkCertificateProof(
  publicKey: KeyObject,
  publicKeyDer: Uint8Array,
  nonce: Uint8Array,
  signature: Uint8Array,
): boolean {
  return verify('sha256', Buffer.concat([label, nonce, publicKeyDer]), publicKey, signature);
}

/** The key in `der` when it is a public key on P-256 in its one DER form; otherwise undefined. */
export function readP256PublicKey(der: Uint8Array): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' });
    const onCurve =
      key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    const canonical = key.export({ type: 'spki', format: 'der' }).equals(Buffer.from(der));
    return onCurve && canonical ? key : undefined;
  } catch {
    // It is no key in DER. The caller refuses the peer.
    return undefined;
  }
}
