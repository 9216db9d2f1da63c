/**
 * The image to which a pool leads its hosts. Pure.
 *
 * Invariants:
 * 1. A target consists of a reference, as in the spec, and a digest. The digest is the one that
 *    this reference resolved to, or an earlier one with the same images for each platform. It is
 *    never a new name with an old digest to which it did not resolve (T4).
 * 2. A failed resolution changes nothing: the target stays, and the rollout goes on (T2, T6).
 * 3. An answer that was requested under another target never replaces the present one: which of the
 *    two is newer is unknown.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type FailureName,
  failureTypeOf,
  type HostName,
  type PoolStatus,
  type RolloutTarget,
  RolloutTargetSchema,
  RunFailureSchema,
  type store as wire,
} from '@rackwright/messages';
import { areSamePlatforms, type PlatformDigests } from '../../images/index.ts';
import { digestInImage, imageByDigest } from '../policy/image-name.ts';
import { isHealthyOn, type SeenHost } from './seen.ts';

/** The result of resolving a reference. */
export type ResolvedImage =
  | {
      readonly kind: 'digest';
      readonly reference: string;
      readonly digest: string;
      readonly version: string;
      /** The target's digest at the time of the request; empty: there was none. */
      readonly known: string;
      /** The digests for each platform; missing: not read. */
      readonly platforms?: PlatformDigests;
    }
  | {
      readonly kind: 'failed';
      readonly reference: string;
      readonly type: FailureName;
      readonly message: string;
    };

export interface TargetImage {
  /** By digest. */
  readonly image: string;
  readonly digest: string;
}

const messageCharsMax = 500;

/** Whether the target has changed since the request (3). */
export function isOutdated(resolved: ResolvedImage, record: wire.PoolRecord): boolean {
  if (resolved.kind === 'failed') return false;
  const now = knownDigest(record, resolved.reference);
  return now !== resolved.known && now !== resolved.digest;
}

/** The known digest of this particular reference; empty: unknown. */
export function knownDigest({ pool }: wire.PoolRecord, reference: string): string {
  const target = pool?.status?.target;
  return target?.reference === reference ? target.digest : '';
}

/** Folds in the result of a resolution; changes `draft`. */
export function foldResolved(
  draft: wire.PoolRecord,
  status: PoolStatus,
  resolved: ResolvedImage | undefined,
  members: readonly SeenHost[],
  nowMs: number,
): void {
  if (resolved === undefined || resolved.reference !== draft.pool?.spec?.image) return;
  if (resolved.kind === 'failed') {
    const { type, message } = resolved;
    draft.resolveFailure = create(RunFailureSchema, {
      type: failureTypeOf(type),
      message: message.slice(0, messageCharsMax),
    });
    return;
  }
  if (isOutdated(resolved, draft)) return;
  const { reference, digest, version } = resolved;
  const image = imageByDigest(reference, digest);
  if (image === undefined) return;
  delete draft.resolveFailure;
  const before = status.target;
  if (before !== undefined && isSameImage(before, resolved)) {
    // Also under another name: the running image stays, and so does its known data.
    status.target = create(RolloutTargetSchema, { ...before, reference });
    return;
  }
  const known = before?.digest === digest ? before.platformDigests : {};
  const platformDigests = { ...known, ...resolved.platforms };
  const next = create(RolloutTargetSchema, { reference, image, digest, version, platformDigests });
  next.since = timestampFromMs(nowMs);
  if (before?.digest === digest) {
    if (before.since !== undefined) next.since = before.since;
  } else {
    rememberPrevious(draft, status, before, members);
    draft.targetSettled = false;
    status.rolledBackFrom = '';
  }
  status.target = next;
}

/**
 * Whether the name resolves to another index of the same images, in the same repository: no host
 * would get anything else.
 */
function isSameImage(
  { image, digest, platformDigests }: RolloutTarget,
  { reference, digest: now, platforms = {} }: Extract<ResolvedImage, { kind: 'digest' }>,
): boolean {
  if (digest === now || imageByDigest(reference, digest) !== image) return false;
  return areSamePlatforms(platformDigests, platforms);
}

/**
 * The image for a possible rollback: the whole pool was led to it, and it runs here in good health.
 * An image that only some hosts got does not replace the one before it.
 */
function rememberPrevious(
  draft: wire.PoolRecord,
  { rolledBackFrom }: PoolStatus,
  before: RolloutTarget | undefined,
  members: readonly SeenHost[],
): void {
  if (before === undefined || rolledBackFrom === before.digest || !draft.targetSettled) return;
  if (!members.some((host) => isHealthyOn(host, before.digest))) return;
  draft.previousTarget = clone(RolloutTargetSchema, before);
}

/** The present target; undefined while the image of the spec is not resolved. */
export function targetOf({ pool, previousTarget }: wire.PoolRecord): RolloutTarget | undefined {
  const target = pool?.status?.target;
  if (target === undefined || target.reference !== pool?.spec?.image) return undefined;
  return pool.status?.rolledBackFrom === target.digest ? previousTarget : target;
}

/** The image that a host must run; undefined: unknown. */
export function wantedBy(record: wire.PoolRecord, host: HostName): TargetImage | undefined {
  const pin = record.pool?.spec?.pins[host];
  if (pin !== undefined) return { image: pin, digest: digestInImage(pin) };
  const target = targetOf(record);
  return target === undefined ? undefined : { image: target.image, digest: target.digest };
}

/** Whether the host is pinned to an image of its own. */
export function isPinned({ pool }: wire.PoolRecord, host: HostName): boolean {
  return pool?.spec?.pins[host] !== undefined;
}
