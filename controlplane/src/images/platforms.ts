/**
 * The digest of an image's manifest for each platform. A tag may move to another index of the same
 * manifests, with other annotations or attestations: for a host that is the same image. Pure.
 */
import {
  type Architecture,
  chooseEntry,
  type Digest,
  isOciError,
  parseManifest,
} from '@rackwright/oci';

/** By architecture; by "" for a single manifest, without an index that names platforms. */
export type PlatformDigests = Readonly<Record<string, string>>;

const architectures: readonly Architecture[] = ['amd64', 'arm64'];

/**
 * From the manifest or index in `bytes`; empty: it cannot be read, or supports no platform of ours.
 */
export function platformsOf(digest: Digest, bytes: Uint8Array): PlatformDigests {
  try {
    const found = parseManifest(bytes);
    if (found.kind !== 'index') return { '': digest };
    const chosen = architectures.flatMap((architecture) => {
      const entry = entryOf(() => chooseEntry(found, architecture).digest);
      return entry === undefined ? [] : [[architecture, entry] as const];
    });
    return Object.fromEntries(chosen);
  } catch (error) {
    if (isOciError(error)) return {};
    throw error;
  }
}

/** An index may lack a platform, or have it only in unsupported forms. */
function entryOf(choose: () => Digest): Digest | undefined {
  try {
    return choose();
  } catch (error) {
    if (isOciError(error)) return undefined;
    throw error;
  }
}

/**
 * Whether every host that could run `before` would get the same manifest from `now`. Unknown
 * digests are not the same.
 */
export function areSamePlatforms(before: PlatformDigests, now: PlatformDigests): boolean {
  const digests = Object.entries(before);
  if (digests.length === 0 || Object.keys(now).length === 0) return false;
  const alone = before[''] ?? now[''];
  if (alone !== undefined) {
    return [...Object.values(before), ...Object.values(now)].every((each) => each === alone);
  }
  return digests.every(([platform, digest]) => now[platform] === digest);
}
