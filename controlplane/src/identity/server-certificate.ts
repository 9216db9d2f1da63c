/** The certificate of our own ports: reused while it is valid, otherwise created again. */
import 'reflect-metadata';
import { createPublicKey } from 'node:crypto';
import { SubjectAlternativeNameExtension, type X509Certificate } from '@peculiar/x509';
import type { KeyAndChain } from '@rackwright/rpc';
import { type Issuer, issueServerCertificate, pastHalfLife, readCertificate } from './authority.ts';
import { type IdentityFolder, readText, writePublic } from './owner-only.ts';

export interface ServerCertificateMaking {
  readonly folder: IdentityFolder;
  readonly issuer: Issuer;
  readonly privateKeyPem: string;
  /** DNS names and IP addresses. */
  readonly names: readonly string[];
}

export interface ServerCertificate {
  readonly certificate: X509Certificate;
  /** With the CA certificate in the chain: agents check its fingerprint. */
  readonly tls: KeyAndChain;
}

/**
 * The certificate in server.pem if it is still valid; otherwise a new one, which is written there.
 */
export async function freshServerCertificate(
  making: ServerCertificateMaking,
  nowMs: number,
): Promise<ServerCertificate> {
  const found = await readText(making.folder, 'server.pem');
  const kept = found === undefined ? undefined : usable(making, found, nowMs);
  if (kept !== undefined) return withChain(making, kept);
  const certificate = await issueServerCertificate(
    making.issuer,
    making.privateKeyPem,
    making.names,
  );
  await writePublic(making.folder, 'server.pem', `${certificate.toString('pem')}\n`);
  return withChain(making, certificate);
}

function withChain(
  { issuer, privateKeyPem }: ServerCertificateMaking,
  certificate: X509Certificate,
): ServerCertificate {
  const chain = [certificate, issuer.caCertificate];
  const certificateChainPem = chain.map((each) => `${each.toString('pem')}\n`).join('');
  return { certificate, tls: { privateKeyPem, certificateChainPem } };
}

function usable(
  making: ServerCertificateMaking,
  pem: string,
  nowMs: number,
): X509Certificate | undefined {
  let certificate: X509Certificate;
  try {
    certificate = readCertificate(pem);
  } catch {
    // The caller makes a new certificate in its place.
    return undefined;
  }
  const { issuer, names, privateKeyPem } = making;
  const fits =
    certificate.notBefore.getTime() <= nowMs &&
    !pastHalfLife(certificate, nowMs) &&
    certificate.issuer === issuer.caCertificate.subject &&
    createPublicKey(privateKeyPem).equals(createPublicKey(certificate.publicKey.toString('pem'))) &&
    sameNames(namesOf(certificate), names);
  return fits ? certificate : undefined;
}

function namesOf(certificate: X509Certificate): string[] {
  const extension = certificate.getExtension(SubjectAlternativeNameExtension);
  return extension?.names.items.map(({ value }) => value) ?? [];
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return [...left].sort().join('\n') === [...right].sort().join('\n');
}
