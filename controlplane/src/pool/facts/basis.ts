/** A key of the settings with which something was tried, to detect that they have changed. Pure. */
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

/** The part of a pool's spec that a halt depends on: a change of it lifts the halt. */
export function haltBasis(record: wire.PoolRecord): string {
  const { maxUnavailable, failureThreshold } = record.pool?.spec?.rollout ?? {};
  const amounts = create(RolloutPolicySchema, {
    ...(maxUnavailable === undefined ? {} : { maxUnavailable }),
    ...(failureThreshold === undefined ? {} : { failureThreshold }),
  });
  return fingerprint(toBinary(RolloutPolicySchema, amounts), deployBytes(record));
}

/**
 * The settings of a host's deployment: "WRITTEN.FETCHED". WRITTEN is what is written and where, and
 * the number of requested retries; FETCHED is where it is fetched from.
 */
export function failureBasis(
  record: wire.PoolRecord,
  registries: readonly ImageRegistry[],
): (host: SeenHost) => string {
  const deploy = fingerprint(deployBytes(record));
  const sources = fingerprint(...registries.map((each) => toBinary(ImageRegistrySchema, each)));
  return ({ name, spec, retries }) => {
    const { rootDisk, bootMacs = [] } = spec ?? {};
    const hostSpec = create(HostSpecSchema, {
      ...(rootDisk === undefined ? {} : { rootDisk }),
      bootMacs: [...bootMacs],
    });
    // Without a retry, a host has the same basis as before retries were counted.
    const requests = retries === 0n ? [] : [String(retries)];
    const written = fingerprint(deploy, toBinary(HostSpecSchema, hostSpec), ...requests);
    return `${written}.${fingerprint(wantedBy(record, name)?.image ?? '', sources)}`;
  };
}

/**
 * Whether a failure belongs to other settings than the present ones. For a failure that lost the
 * earlier image, the image source does not matter.
 */
export function isOfOther({ basis, counted }: wire.PoolFailure, now: string): boolean {
  if (basis === '') return false;
  const part = (text: string) => (counted ? text.split('.')[0] : text);
  return part(basis) !== part(now);
}
