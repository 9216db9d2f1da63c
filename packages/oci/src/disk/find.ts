/**
 * From a given digest to the one image that fits a machine: through an index, and through an index
 * in it, to an artifact.
 *
 * 1. Indexes lead to indexes a bounded number of times.
 * 2. An entry for a platform that was not asked for is not taken, also when there is nothing else.
 */
import type { Digest } from '../digest.ts';
import { OciError } from '../failure.ts';
import {
  type Architecture,
  fits,
  type ImageIndex,
  type IndexEntry,
  noPlatform,
} from '../manifest.ts';
import { parseArtifact } from './artifact.ts';
import { annotationKeys, type HostImage, readHostImage } from './disk-image.ts';

export interface FoundImage {
  /** The digest of the artifact itself. */
  readonly digest: Digest;
  readonly image: HostImage;
}

/** Answers the manifest or index of a digest; `sizeBytes` when something has named it. */
export type ReadManifest = (digest: Digest, sizeBytes?: number) => Promise<Uint8Array>;

const nestingMax = 3;
const indexForm =
  /^application\/vnd\.(?:oci\.image\.index\.v1|docker\.distribution\.manifest\.list\.v2)\+json$/;

/** The image for `architecture` that `root` leads to. Throws `OciError`. */
export async function findHostImage(
  root: Digest,
  architecture: Architecture,
  read: ReadManifest,
): Promise<FoundImage> {
  let at: { digest: Digest; sizeBytes?: number } = { digest: root };
  let isNamed = false;
  for (let depth = 0; depth <= nestingMax; depth += 1) {
    const found = parseArtifact(await read(at.digest, at.sizeBytes));
    if (found.kind === 'artifact') {
      const named = found.annotations[annotationKeys.architecture] ?? '';
      if (named !== '' && !fits({ architecture: named, variant: '' }, architecture)) {
        throw noPlatform(architecture, [`linux/${named}`]);
      }
      const known = isNamed || named !== '' ? architecture : undefined;
      return { digest: at.digest, image: readHostImage(found, known) };
    }
    const entry = chooseEntry(found, architecture);
    isNamed ||= entry.architecture !== '';
    at = entry;
  }
  throw new OciError('malformed', `the image is behind more than ${nestingMax} indexes`);
}

/** Of several entries for one platform, the one that can be written without conversion first. */
const preferences: readonly ((entry: IndexEntry) => boolean)[] = [
  (entry) => entry.annotations['disktype'] === 'raw',
  (entry) => entry.annotations['disktype'] === 'qcow2',
  (entry) => entry.annotations['disktype'] === undefined,
];

/** The entry for linux on `architecture`, or the one index that is for no platform itself. */
export function chooseEntry({ manifests }: ImageIndex, architecture: Architecture): IndexEntry {
  const own = manifests.filter((entry) => entry.os === 'linux' && fits(entry, architecture));
  for (const isPreferred of preferences) {
    const chosen = own.find(isPreferred);
    if (chosen !== undefined) return chosen;
  }
  if (own.length > 0) {
    const kinds = own.map(({ annotations }) => JSON.stringify(annotations['disktype'] ?? ''));
    const message = `the image is there only as ${kinds.slice(0, 10).join(', ')}`;
    throw new OciError('noPlatform', `${message}; raw or qcow2 is taken`.slice(0, 300));
  }
  const [nested, ...more] = manifests.filter(
    ({ mediaType, os }) => os === '' && indexForm.test(mediaType),
  );
  if (nested !== undefined && more.length === 0) return nested;
  const there = manifests.filter(({ os }) => os !== '' && os !== 'unknown');
  throw noPlatform(architecture, [
    ...new Set(there.map((entry) => `${entry.os}/${entry.architecture}`)),
  ]);
}
