/** A certificate that signs itself, as BMCs come with one. */
import 'reflect-metadata';
import { createHash, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

export interface SelfSigned {
  readonly keyPem: string;
  readonly certificatePem: string;
  /** SHA-256 of the DER, lower-case hex. */
  readonly certificateSha256: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const longAgo = new Date('2020-01-01T00:00:00Z');
const longAhead = new Date('2049-12-31T23:59:59Z');

export async function selfSigned(commonName: string, address: string): Promise<SelfSigned> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const type = isIP(address) === 0 ? 'dns' : 'ip';
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    notBefore: longAgo,
    notAfter: longAhead,
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([{ type, value: address }]),
    ],
  });
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  const base64 = Buffer.from(key)
    .toString('base64')
    .replace(/.{1,64}/g, '$&\n');
  return {
    keyPem: `-----BEGIN PRIVATE KEY-----\n${base64}-----END PRIVATE KEY-----\n`,
    certificatePem: certificate.toString('pem'),
    certificateSha256: createHash('sha256')
      .update(new Uint8Array(certificate.rawData))
      .digest('hex'),
  };
}
