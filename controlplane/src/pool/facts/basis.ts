/** By what is told whether something was tried with what there is now. Pure. */
import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  DeploySpecSchema,
  HostSpecSchema,
  type ImageRegistry,
  ImageRegistrySchema,
  RolloutPolicySchema,
  type store as wire,
} from '@rackwright/messages';
import type { SeenHost } from './seen.ts';
import { wantedBy } from './target.ts';

const digitsMax = 8;

function fingerprint(...parts: readonly (Uint8Array | string)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, digitsMax);
}

function deployBytes({ pool }: wire.PoolRecord): Uint8Array {
  return toBinary(DeploySpecSchema, pool?.spec?.deploy ?? create(DeploySpecSchema));
}

/** What of a pool's spec a halt is judged by: another one lifts it. */
export function haltBasis(record: wire.PoolRecord): string {
  const { maxUnavailable, failureThreshold } = record.pool?.spec?.rollout ?? {};
  const amounts = create(RolloutPolicySchema, {
    ...(maxUnavailable === undefined ? {} : { maxUnavailable }),
    ...(failureThreshold === undefined ? {} : { failureThreshold }),
  });
  return fingerprint(toBinary(RolloutPolicySchema, amounts), deployBytes(record));
}

/**
 * What a host's deployment was tried with: "WRITTEN.FETCHED", of which the first is what is written
 * and where, and how often people have asked for a retry; the second whence it comes.
 */
export function failureBasis(
  record: wire.PoolRecord,
  registries: readonly ImageRegistry[],
): (host: SeenHost) => string {
  const deploy = fingerprint(deployBytes(record));
  const sources = fingerprint(...registries.map((each) => toBinary(ImageRegistrySchema, each)));
  return ({ name, spec, retries }) => {
    const { rootDisk, bootMacs = [] } = spec ?? {};
    const place = create(HostSpecSchema, {
      ...(rootDisk === undefined ? {} : { rootDisk }),
      bootMacs: [...bootMacs],
    });
    // A host of which nobody has asked one has the basis that it had before they were counted.
    const asked = retries === 0n ? [] : [String(retries)];
    const written = fingerprint(deploy, toBinary(HostSpecSchema, place), ...asked);
    return `${written}.${fingerprint(wantedBy(record, name)?.image ?? '', sources)}`;
  };
}

/**
 * Whether a failure was of something else than is there now. Whence an image comes is nothing to
 * one that was lost with what stood there before.
 */
export function isOfOther({ basis, counted }: wire.PoolFailure, now: string): boolean {
  if (basis === '') return false;
  const part = (text: string) => (counted ? text.split('.')[0] : text);
  return part(basis) !== part(now);
}
