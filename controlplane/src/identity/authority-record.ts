/** Certificate authorities as records: created, sealed, opened, and combined for others. */
import { create } from '@bufbuild/protobuf';
import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { X509Certificate } from '@peculiar/x509';
import {
  type Actor,
  Authority_Stage as Stage,
  sha256Hex,
  store as wire,
} from '@rackwright/messages';
import type { Clock, Random } from '@rackwright/platform';
import { generatePrivateKeyPem, type Issuer, makeCaCertificate, openIssuer } from './authority.ts';

/** Key of the record. */
export const trustKey = 'trust.authorities';

/** Seals the authorities' private keys. */
export interface KeySealer {
  sealBytes(context: string, plain: Uint8Array): wire.SealedValue;
  openBytes(context: string, sealed: wire.SealedValue | undefined): Uint8Array;
}

/** The dependencies of creating an authority. */
export interface AuthorityMaking {
  readonly clock: Clock;
  readonly random: Random;
  readonly sealer: KeySealer;
  readonly caLifetimeMs: number;
}

/** A new key and its certificate. */
export async function makeAuthority(
  { clock, random, sealer, caLifetimeMs }: AuthorityMaking,
  stage: Stage,
  by: Actor,
  reason: string,
): Promise<wire.AuthorityRecord> {
  const keyPem = generatePrivateKeyPem();
  const certificate = await makeCaCertificate(keyPem, clock, random, caLifetimeMs);
  const der = new Uint8Array(certificate.rawData);
  const sha256 = sha256Hex(der);
  const now = timestampFromMs(clock.nowMs());
  const plain = Buffer.from(keyPem);
  const sealedKey = sealer.sealBytes(contextOf(sha256), plain);
  plain.fill(0);
  return create(wire.AuthorityRecordSchema, {
    authority: {
      sha256,
      stage,
      createTime: now,
      expireTime: timestampFromDate(certificate.notAfter),
      stageTime: now,
      by,
      reason,
    },
    certificate: der,
    sealedKey,
  });
}

/** The issuer with this authority's key. Throws `SecretError` when the key does not open. */
export function openAuthority(
  record: wire.AuthorityRecord,
  sealer: KeySealer,
  clock: Clock,
  random: Random,
): Promise<Issuer> {
  const plain = sealer.openBytes(contextOf(record.authority?.sha256 ?? ''), record.sealedKey);
  const keyPem = Buffer.from(plain).toString('utf8');
  plain.fill(0);
  return openIssuer(keyPem, new X509Certificate(record.certificate.slice()), clock, random);
}

/** Every trusted certificate, PEM, the signing one first. */
export function certificatesOf({ authorities }: wire.TrustRecord): string[] {
  const first = ({ authority }: wire.AuthorityRecord) =>
    authority?.stage === Stage.ACTIVE ? 0 : 1;
  return [...authorities]
    .sort((left, right) => first(left) - first(right))
    .map(({ certificate }) => `${new X509Certificate(certificate.slice()).toString('pem')}\n`);
}

function contextOf(sha256: string): string {
  return `authorities/${sha256}`;
}
