/**
 * The version that an image names. An index usually names none itself: then the first image in its
 * list is read. The version is shown to people, and nothing depends on it.
 */
import { type Digest, isOciError, parseManifest } from '@rackwright/oci';

const versionCharactersMax = 128;
const versionAnnotation = 'org.opencontainers.image.version';

/** The version of the manifest or index in `bytes`; empty: none, or it cannot be read. */
export async function versionOf(
  bytes: Uint8Array,
  readManifest: (digest: Digest) => Promise<Uint8Array>,
): Promise<string> {
  const own = annotatedVersion(bytes);
  if (own !== '') return own;
  const first = firstListed(bytes);
  if (first === undefined) return '';
  try {
    return annotatedVersion(await readManifest(first));
  } catch (error) {
    if (isOciError(error)) return '';
    throw error;
  }
}

/** An entry without a platform describes an image and is none. */
function firstListed(bytes: Uint8Array): Digest | undefined {
  try {
    const manifest = parseManifest(bytes);
    if (manifest.kind !== 'index') return undefined;
    return manifest.manifests.find(({ os }) => os !== 'unknown')?.digest;
  } catch (error) {
    if (isOciError(error)) return undefined;
    throw error;
  }
}

function annotatedVersion(bytes: Uint8Array): string {
  try {
    const manifest: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    const { annotations } = manifest as { annotations?: Readonly<Record<string, unknown>> };
    const version = annotations?.[versionAnnotation];
    if (typeof version !== 'string' || /\p{Cc}/u.test(version)) return '';
    return version.slice(0, versionCharactersMax);
  } catch {
    // It is no manifest, so it has no version. A deployment refuses the image.
    return '';
  }
}
