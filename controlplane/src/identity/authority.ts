/**
 * The certificate authority: creates and reads certificates, nothing else.
 *
 * Invariants:
 * 1. The server decides every field of a certificate; only the public key comes from the request.
 * 2. Times come from the given clock; serial numbers from the random source.
 */
import type { RackId } from '@rackwright/messages';
import 'reflect-metadata';
import { generateKeyPairSync, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { type Clock, type Random, randomId } from '@rackwright/platform';

/** Lifetime of a server certificate, milliseconds. */
export const serverLifetimeMs = 90 * 86_400_000;
/** Certificates begin this much in the past, for peers whose clocks are behind. */
export const clockSkewMs = 5 * 60_000;

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** The inputs of certificates. */
export interface Issuer {
  readonly caCertificate: X509Certificate;
  readonly caKey: webcrypto.CryptoKey;
  readonly clock: Clock;
  readonly random: Random;
}

/** A new private key on P-256, PKCS #8 in PEM. */
export function generatePrivateKeyPem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** The certificate in PEM. Throws when it is invalid. */
export function readCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem);
}

/** Makes the CA's own certificate. */
export async function makeCaCertificate(
  caKeyPem: string,
  clock: Clock,
  random: Random,
  caLifetimeMs: number,
): Promise<X509Certificate> {
  const keys = await keyPair(caKeyPem);
  const startMs = clock.nowMs() - clockSkewMs;
  return X509CertificateGenerator.createSelfSigned({
    name: `CN=Rackwright CA ${randomId(random).slice(0, 8)}`,
    keys,
    serialNumber: serialNumber(random),
    signingAlgorithm: ecdsa,
    notBefore: new Date(startMs),
    notAfter: new Date(startMs + caLifetimeMs),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
}

/** An issuer from the CA's key and certificate. */
export async function openIssuer(
  caKeyPem: string,
  caCertificate: X509Certificate,
  clock: Clock,
  random: Random,
): Promise<Issuer> {
  const { privateKey } = await keyPair(caKeyPem);
  return { caCertificate, caKey: privateKey, clock, random };
}

/** A certificate for our own two ports, under `names` (DNS names and IP addresses). */
export async function issueServerCertificate(
  issuer: Issuer,
  privateKeyPem: string,
  names: readonly string[],
): Promise<X509Certificate> {
  const { publicKey } = await keyPair(privateKeyPem);
  const alternatives = names.map(
    (value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const,
  );
  return issue(issuer, publicKey, 'CN=rackwright control plane', serverLifetimeMs, [
    new SubjectAlternativeNameExtension(alternatives),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
  ]);
}

/** A certificate for the agent of rack `rackId`; its identity is the URI in it. */
export async function issueAgentCertificate(
  issuer: Issuer,
  publicKeyDer: Uint8Array,
  rackId: RackId,
  lifetimeMs: number,
): Promise<X509Certificate> {
  const publicKey = await webcrypto.subtle.importKey(
    'spki',
    Buffer.from(publicKeyDer),
    ecdsa,
    true,
    ['verify'],
  );
  return issue(issuer, publicKey, `CN=racks/${rackId}`, lifetimeMs, [
    new SubjectAlternativeNameExtension([{ type: 'url', value: agentUri(rackId) }]),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
  ]);
}

const agentUriStart = 'rackwright://racks/';

/** The name of a rack's agent in its certificate. */
export function agentUri(rackId: RackId): string {
  return `${agentUriStart}${rackId}`;
}

/** The rack of an agent's certificate; undefined when it names none, or more than one. */
export function rackOfUris(uris: readonly string[]): RackId | undefined {
  const [uri, ...more] = uris;
  if (uri === undefined || more.length > 0 || !uri.startsWith(agentUriStart)) return undefined;
  return uri.slice(agentUriStart.length);
}

/** Whether half of the certificate's life is over. */
export function pastHalfLife(certificate: X509Certificate, nowMs: number): boolean {
  return nowMs >= halfLifeMs(certificate);
}

/** The middle of the certificate's life, milliseconds since the epoch. */
export function halfLifeMs(certificate: X509Certificate): number {
  return (certificate.notBefore.getTime() + certificate.notAfter.getTime()) / 2;
}

async function issue(
  issuer: Issuer,
  publicKey: webcrypto.CryptoKey,
  subject: string,
  lifetimeMs: number,
  extensions: Extension[],
): Promise<X509Certificate> {
  const nowMs = issuer.clock.nowMs();
  return X509CertificateGenerator.create({
    subject,
    issuer: issuer.caCertificate.subject,
    publicKey,
    signingKey: issuer.caKey,
    signingAlgorithm: ecdsa,
    serialNumber: serialNumber(issuer.random),
    notBefore: new Date(nowMs - clockSkewMs),
    notAfter: new Date(Math.min(nowMs + lifetimeMs, issuer.caCertificate.notAfter.getTime())),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      await AuthorityKeyIdentifierExtension.create(issuer.caCertificate.publicKey),
      await SubjectKeyIdentifierExtension.create(publicKey),
      ...extensions,
    ],
  });
}

async function keyPair(privateKeyPem: string): Promise<webcrypto.CryptoKeyPair> {
  const pkcs8 = derOf(privateKeyPem);
  const privateKey = await webcrypto.subtle.importKey('pkcs8', pkcs8, ecdsa, true, ['sign']);
  // WebCrypto derives the public half of a private key only through JWK.
  const {
    d: _private,
    key_ops: _use,
    ...jwk
  } = await webcrypto.subtle.exportKey('jwk', privateKey);
  const publicKey = await webcrypto.subtle.importKey('jwk', jwk, ecdsa, true, ['verify']);
  return { privateKey, publicKey };
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  const base64 = pem.replaceAll(/-----[A-Z ]+-----|\s/g, '');
  return new Uint8Array(Buffer.from(base64, 'base64'));
}

/** 16 random bytes that read as a positive number (RFC 5280 §4.1.2.2). */
function serialNumber(random: Random): string {
  const id = randomId(random);
  return `4${id.slice(1)}`;
}
