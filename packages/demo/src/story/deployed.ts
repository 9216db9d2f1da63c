/**
 * Whether hosts and their pool are as a rollout should have left them. Pure.
 *
 * D1 What the control plane says of a host has to be so at its machine too: on its disk, which is
 *    read from outside, and in what runs there.
 */
import { isPoolBecause, type PoolStatus, poolCondition } from '@rackwright/messages';

/** One image, as it was published. */
export interface PublishedImage {
  readonly version: string;
  /** "sha256:…" of its manifest. */
  readonly digest: string;
  /** "sha256:…" of the disk that it is unpacked to. */
  readonly contentDigest: string;
}

/** A host, as the control plane reports it, and its machine, as anybody can see it. */
export interface ReportedHost {
  readonly name: string;
  /** Its digest, as the control plane reports it; empty: none. */
  readonly image: string;
  readonly contentDigest: string;
  readonly isProvisioned: boolean;
  /** The version that is on its disk, byte for byte; undefined: none of the published ones. */
  readonly diskHolds: string | undefined;
  /** The version that runs on the machine now; undefined: it is off, or nothing has started. */
  readonly runs: string | undefined;
}

/** The problem of a host that should run the image; undefined: none. */
export function wrongWith(host: ReportedHost, wanted: PublishedImage): string | undefined {
  const { name, image, contentDigest, isProvisioned, diskHolds, runs } = host;
  const { version, digest } = wanted;
  if (!isProvisioned) return `${name} is not provisioned`;
  if (!image.endsWith(`@${digest}`)) return `${name} is said to run ${image || 'nothing'}`;
  if (contentDigest !== wanted.contentDigest) {
    return `the content of the disk of ${name} is said to be ${contentDigest || 'none'}`;
  }
  if (diskHolds !== version) return `the disk of ${name} holds ${diskHolds ?? 'no whole image'}`;
  return runs === version ? undefined : `${name} runs ${runs ?? 'nothing'}`;
}

/** The problem of a rollout that should be completed; undefined: none. */
export function notCompleted(
  status: PoolStatus | undefined,
  wanted: PublishedImage,
  hostsCount: number,
): string | undefined {
  const { target, currentCount = 0, slots = [] } = status ?? {};
  if (target?.digest !== wanted.digest) return `the pool wants ${target?.image ?? 'nothing yet'}`;
  if (currentCount !== hostsCount) return `${currentCount} of ${hostsCount} hosts are on it`;
  return slots.length === 0 ? undefined : `${slots.length} hosts are still out`;
}

/** The problem of a rollout that should be halted; undefined: none. */
export function notHalted(
  status: PoolStatus | undefined,
  bad: Pick<PublishedImage, 'digest'>,
): string | undefined {
  const { target, failedCount = 0 } = status ?? {};
  if (target?.digest !== bad.digest) return `the pool wants ${target?.image ?? 'nothing yet'}`;
  const degraded = poolCondition(status, 'Degraded');
  const isHalted = degraded?.status === true && isPoolBecause(status, 'Degraded', 'RolloutHalted');
  if (!isHalted) return 'the rollout is not halted';
  if (degraded.message === '') return 'the pool does not say why the rollout is halted';
  return failedCount === 1 ? undefined : `${failedCount} hosts have failed, and one was to`;
}
