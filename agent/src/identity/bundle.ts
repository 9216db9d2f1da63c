/** The certificate authorities that an agent trusts: read, compared, named. Pure. */
import { X509Certificate } from 'node:crypto';
import { sha256Hex } from '@rackwright/messages';

/** Authorities that one agent trusts at most. */
export const authoritiesMax = 8;
const pemBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates in a PEM text, one after another. */
export function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(pemBlock) ?? []).map((block) => new X509Certificate(block));
}

/** SHA-256 of each certificate (DER), lower-case hex. */
export function fingerprintsOf(certificates: readonly X509Certificate[]): string[] {
  return certificates.map(({ raw }) => sha256Hex(raw));
}

/** The bundle as one PEM text. Throws for a bundle that would lock the agent out. */
export function readBundle(certificatePem: readonly string[], activeSha256: string): string {
  if (certificatePem.length === 0 || certificatePem.length > authoritiesMax) {
    throw new Error(
      `a bundle of ${certificatePem.length} certificates; 1 to ${authoritiesMax} fit`,
    );
  }
  const certificates = certificatePem.flatMap(certificatesIn);
  const noAuthority = certificates.some(({ ca }) => !ca);
  if (noAuthority || certificates.length !== certificatePem.length) {
    throw new Error('a bundle holds something else than certificates of authorities');
  }
  if (!fingerprintsOf(certificates).includes(activeSha256)) {
    throw new Error('a bundle without the authority that signs');
  }
  return certificates.map((certificate) => certificate.toString()).join('');
}

/** Which of `authorities` signed the certificate, if any. */
export function signerOf(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
): X509Certificate | undefined {
  return authorities.find(({ publicKey }) => certificate.verify(publicKey));
}
