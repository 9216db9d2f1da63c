/** Makes the agent's boot certificate. Loading this takes a fifth of the agent's start. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { sha256Hex } from '@rackwright/messages';
import type { Random } from '@rackwright/platform';

export interface BootCertificate {
  readonly privateKeyPem: string;
  readonly certificatePem: string;
  /** SHA-256 of the certificate (DER), lower-case hex. */
  readonly fingerprint: string;
}

/** The name in the certificate. Runners verify this name, at each address that they dial. */
const certificateName = 'rackwright-agent';
const serialBytes = 16;
/** RFC 5280 §4.1.2.5: this end means "no end". */
const noEnd = new Date('9999-12-31T23:59:59Z');
const longAgo = new Date('1970-01-01T00:00:00Z');

/** A new key, and a certificate that it signs itself. */
export async function makeCertificate(random: Random): Promise<BootCertificate> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const serial = random.bytes(serialBytes);
  // Positive, and of full length (RFC 5280 §4.1.2.2).
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: Buffer.from(serial).toString('hex'),
    name: `CN=${certificateName}`,
    notBefore: longAgo,
    notAfter: noEnd,
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([{ type: 'dns', value: certificateName }]),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  const privateKeyPem = pem('PRIVATE KEY', new Uint8Array(pkcs8));
  const fingerprint = sha256Hex(new Uint8Array(certificate.rawData));
  return { privateKeyPem, certificatePem: certificate.toString('pem'), fingerprint };
}

const pemLineCharacters = 64;

function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(new RegExp(`.{1,${pemLineCharacters}}`, 'g')) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
