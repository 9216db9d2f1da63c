/** Certificates for tests, signed by themselves. */
import 'reflect-metadata';
import { createHash, webcrypto } from 'node:crypto';
import { X509CertificateGenerator } from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

export interface TestCertificate {
  readonly key: string;
  readonly cert: string;
  readonly sha256: string;
}

export async function testCertificate(name: string): Promise<TestCertificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    signingAlgorithm: algorithm,
    keys,
  });
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  const base64 = Buffer.from(der)
    .toString('base64')
    .replace(/.{1,64}/g, '$&\n');
  return {
    key: `-----BEGIN PRIVATE KEY-----\n${base64}-----END PRIVATE KEY-----\n`,
    cert: certificate.toString('pem'),
    sha256: createHash('sha256').update(new Uint8Array(certificate.rawData)).digest('hex'),
  };
}
