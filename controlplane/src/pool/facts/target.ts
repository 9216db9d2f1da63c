/**
 * Which image a pool leads its hosts to. Pure.
 *
 * Invariants:
 * 1. A target is a reference as the spec names it and the digest that this very reference was
 *    resolved to, or one before it of the same images for each platform: never a new name with an
 *    old digest that it was not resolved to (T4).
 * 2. What cannot be resolved changes nothing: the target stays, and the rollout goes on (T2, T6).
 * 3. An answer that was asked for under another target than there is now never replaces this one:
 *    which of the two is newer, nobody can tell.
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
import { digestOf, imageByDigest } from '../policy/image-name.ts';
import { isHealthyOn, type SeenHost } from './seen.ts';

/** What became of looking a reference up. */
export type Resolved =
  | {
      readonly kind: 'digest';
      readonly reference: string;
      readonly digest: string;
      readonly version: string;
      /** The digest that the target had when it was asked; empty: there was none. */
      readonly known: string;
      /** What it is for each platform; missing: nobody has looked. */
      readonly platforms?: PlatformDigests;
    }
  | {
      readonly kind: 'failed';
      readonly reference: string;
      readonly type: FailureName;
      readonly message: string;
    };

export interface Wanted {
  /** By digest. */
  readonly image: string;
  readonly digest: string;
}

const messageCharsMax = 500;

/** Whether the target has become another one since it was asked (3). */
export function isOutdated(resolved: Resolved, record: wire.PoolRecord): boolean {
  if (resolved.kind === 'failed') return false;
  const now = knownDigest(record, resolved.reference);
  return now !== resolved.known && now !== resolved.digest;
}

/** What this very reference is known to name; empty: it is not. */
export function knownDigest({ pool }: wire.PoolRecord, reference: string): string {
  const target = pool?.status?.target;
  return target?.reference === reference ? target.digest : '';
}

/** Takes in what became of the lookup; `draft` is changed. */
export function foldResolved(
  draft: wire.PoolRecord,
  status: PoolStatus,
  resolved: Resolved | undefined,
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
    // Under another name, too: what runs there stays, and so does what is known of it.
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
 * Whether the name leads to another index of the same images, in the repository of the one before:
 * no host would get anything else by it.
 */
function isSameImage(
  { image, digest, platformDigests }: RolloutTarget,
  { reference, digest: now, platforms = {} }: Extract<Resolved, { kind: 'digest' }>,
): boolean {
  if (digest === now || imageByDigest(reference, digest) !== image) return false;
  return areSamePlatforms(platformDigests, platforms);
}

/**
 * What the pool could go back to: an image that it was led to as a whole, and that runs in good
 * health here. One that only some had got stays behind the one before it.
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

/** The target that is in force; undefined while the image that the spec names is not resolved. */
export function targetOf({ pool, previousTarget }: wire.PoolRecord): RolloutTarget | undefined {
  const target = pool?.status?.target;
  if (target === undefined || target.reference !== pool?.spec?.image) return undefined;
  return pool.status?.rolledBackFrom === target.digest ? previousTarget : target;
}

/** What a host shall run; undefined: it is not known. */
export function wantedBy(record: wire.PoolRecord, host: HostName): Wanted | undefined {
  const pin = record.pool?.spec?.pins[host];
  if (pin !== undefined) return { image: pin, digest: digestOf(pin) };
  const target = targetOf(record);
  return target === undefined ? undefined : { image: target.image, digest: target.digest };
}

/** Whether the host keeps to an image of its own. */
export function isPinned({ pool }: wire.PoolRecord, host: HostName): boolean {
  return pool?.spec?.pins[host] !== undefined;
}
