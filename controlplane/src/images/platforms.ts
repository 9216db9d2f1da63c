/**
 * What an image is for each platform: the digest of that platform's own manifest. A tag may move to
 * another index of the same ones, with other annotations or attestations: for a host that is the
 * same image. Pure.
 */
import {
  type Architecture,
  chooseEntry,
  type Digest,
  isOciError,
  parseManifest,
} from '@rackwright/oci';

/** By architecture; by "" where there is one manifest, and no index that says for what. */
export type PlatformDigests = Readonly<Record<string, string>>;

const architectures: readonly Architecture[] = ['amd64', 'arm64'];

/** Of the manifest or index in `bytes`; empty: it cannot be read, or is for no platform of ours. */
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

/** An index may lack a platform, or have it only in forms that are not taken. */
function entryOf(choose: () => Digest): Digest | undefined {
  try {
    return choose();
  } catch (error) {
    if (isOciError(error)) return undefined;
    throw error;
  }
}

/**
 * Whether every host that could run `before` would get the same by `now`. What is not known is not
 * the same.
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
