/** Certificates for this package's tests, made anew in each run; production's are `identity/`'s. */
import 'reflect-metadata';
import { createHash, randomBytes, type webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { KeyAndChain } from './tls.ts';

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;

export interface TestCa {
  readonly caPem: string;
  readonly caSha256: string;
  server(names?: readonly { type: 'dns' | 'ip'; value: string }[]): Promise<KeyAndChain>;
  client(uri: string, validForMs?: number): Promise<KeyAndChain>;
}

/** A CA with certificates for servers on 127.0.0.1 and for clients. */
export async function createTestCa(): Promise<TestCa> {
  const keys = await crypto.subtle.generateKey(ecdsa, true, ['sign', 'verify']);
  const ca = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test CA',
    keys,
    serialNumber: randomBytes(8).toString('hex'),
    signingAlgorithm: ecdsa,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
    extensions: [new BasicConstraintsExtension(true, 0, true)],
  });
  const issue = (extensions: Extension[], validForMs: number) =>
    issueFrom(ca, keys.privateKey, extensions, validForMs);
  return {
    caPem: ca.toString('pem'),
    caSha256: createHash('sha256').update(Buffer.from(ca.rawData)).digest('hex'),
    server: (names = [{ type: 'ip', value: '127.0.0.1' }]) =>
      issue(
        [
          new SubjectAlternativeNameExtension([...names]),
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        ],
        dayMs,
      ),
    client: (uri, validForMs = dayMs) =>
      issue(
        [
          new SubjectAlternativeNameExtension([{ type: 'url', value: uri }]),
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
        ],
        validForMs,
      ),
  };
}

async function issueFrom(
  ca: X509Certificate,
  caKey: webcrypto.CryptoKey,
  extensions: Extension[],
  validForMs: number,
): Promise<KeyAndChain> {
  const keys = await crypto.subtle.generateKey(ecdsa, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=test',
    issuer: ca.subject,
    serialNumber: randomBytes(8).toString('hex'),
    publicKey: keys.publicKey,
    signingKey: caKey,
    signingAlgorithm: ecdsa,
    notBefore: new Date(Date.now() - 2 * dayMs),
    notAfter: new Date(Date.now() + validForMs),
    extensions,
  });
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  const base64 = Buffer.from(pkcs8).toString('base64');
  return {
    privateKeyPem: `-----BEGIN PRIVATE KEY-----\n${base64}\n-----END PRIVATE KEY-----\n`,
    certificateChainPem: `${certificate.toString('pem')}\n${ca.toString('pem')}\n`,
  };
}
