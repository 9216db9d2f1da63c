/**
 * Manifests through the cache: a manifest that was pulled once is found while its registry is
 * unreachable.
 */
import {
  type BlobSource,
  type Digest,
  manifestBytesMax,
  OciError,
  type Pulling,
} from '@rackwright/oci';
import type { BlobCache } from './blob-cache.ts';

export interface ManifestRequest {
  readonly cache: BlobCache;
  readonly registry: Pulling;
  readonly repository: string;
  readonly signal: AbortSignal;
  /** The digests that are pinned for the caller, also when this rejects. */
  readonly pinned: Digest[];
}

/** The manifest's bytes, pinned; `sizeBytes` when something has named it. */
export async function cachedManifest(
  { cache, registry, repository, signal, pinned }: ManifestRequest,
  digest: Digest,
  sizeBytes?: number,
): Promise<Uint8Array> {
  if (!(await cache.pinIfHere(digest))) {
    const bytes = await registry.manifest(repository, digest, signal);
    const wanted = { digest, sizeBytes: sizeBytes ?? bytes.length };
    await cache.pin(wanted, inMemory(bytes), signal, () => {});
  }
  pinned.push(digest);
  return readSmall(cache, digest, manifestBytesMax);
}

/** A small blob that is pinned. */
export async function readSmall(
  cache: BlobCache,
  digest: Digest,
  bytesMax: number,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of cache.read(digest)) {
    bytes += part.length;
    if (bytes > bytesMax) {
      throw new OciError('tooLarge', `${digest} is longer than ${bytesMax} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function inMemory(bytes: Uint8Array): BlobSource {
  async function* chunks(from: number) {
    // The reader owns the bytes, and may request them once more.
    yield bytes.slice(from);
  }
  return { open: async (_, from) => ({ start: from, chunks: chunks(from), close: () => {} }) };
}
