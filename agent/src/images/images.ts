/**
 * Images for commands: fetched by digest into the cache, pinned while a runner may ask for them.
 *
 * 1. A reference without a digest is not fetched: exactly the named image runs.
 * 2. Everything that can be checked is checked before the runner is disturbed: manifest,
 *    configuration, sizes, and every blob's digest.
 */
import {
  type Architecture,
  choosePlatform,
  configBytesMax,
  type Descriptor,
  type Digest,
  type ImageIndex,
  type ImageReference,
  type IndexEntry,
  type Manifest,
  OciError,
  parseConfig,
  parseDigest,
  parseManifest,
  parseReference,
  RegistryClient,
  type RegistryCredential,
} from '@rackwright/oci';
import type { WebClient } from '@rackwright/platform';
import type { BlobCache, BlobFile, ComingBlob } from './blob-cache.ts';
import { cachedManifest, readSmall } from './cached-manifest.ts';

export interface ImagesParts {
  readonly cache: BlobCache;
  readonly web: WebClient;
  /** The processor of the hosts that boot the runner here. */
  readonly architecture: Architecture;
}

/** A request to a registry. */
export interface WantedImage {
  /** "registry/repository@sha256:HEX" */
  readonly reference: string;
  readonly plainHttp: boolean;
  readonly credential: RegistryCredential | undefined;
  /** As in `RegistryAccess`; empty: none. */
  readonly tokenService?: string;
  readonly internal?: readonly string[];
}

/** An image that stays until it is released. */
export interface PinnedImage {
  release(): void;
}

export type FetchProgress = (fetchedBytes: number, allBytes: number) => void;

export class Images {
  readonly #parts: ImagesParts;

  constructor(parts: ImagesParts) {
    this.#parts = parts;
  }

  /** A blob of the cache by the hex of its SHA-256, if it is here whole. */
  blob(hex: string): BlobFile | undefined {
    const digest = parseDigest(`sha256:${hex}`);
    return digest && this.#parts.cache.find(digest);
  }

  /**
   * Likewise, for the HTTP server: also a fetch under way; `later`: a part is here, and more may
   * come.
   */
  served(hex: string): BlobFile | ComingBlob | 'later' | undefined {
    const digest = parseDigest(`sha256:${hex}`);
    if (digest === undefined) return undefined;
    const { cache } = this.#parts;
    const found = cache.find(digest) ?? cache.coming(digest);
    return found ?? (cache.isBegun(digest) ? 'later' : undefined);
  }

  /** Rejects with `OciError`, and then pins nothing. */
  async fetch(
    wanted: WantedImage,
    signal: AbortSignal,
    progress: FetchProgress,
  ): Promise<PinnedImage> {
    const { reference, digest } = readReference(wanted.reference);
    const { cache, web } = this.#parts;
    const { registry, repository } = reference;
    const { plainHttp, credential, tokenService = '', internal = [] } = wanted;
    const named = { internal, ...(tokenService === '' ? {} : { tokenService }) };
    const client = new RegistryClient(web, { registry, plainHttp, credential, ...named });
    const pinned: Digest[] = [];
    const release = (): void => {
      for (const each of pinned.splice(0)) cache.unpin(each);
    };
    try {
      const fetching = new ImageFetch(this.#parts, client, repository, pinned, signal, progress);
      await fetching.all(digest);
    } catch (error) {
      release();
      throw error;
    }
    return { release };
  }
}

function readReference(text: string): { reference: ImageReference; digest: Digest } {
  const read = parseReference(text);
  if (read.kind === 'bad') throw new OciError('malformed', `the image ${read.problem}`);
  const { digest } = read.reference;
  if (digest === undefined) throw new OciError('malformed', 'the image is named by no digest');
  return { reference: read.reference, digest };
}

/** The fetch of one image: the digests that it pins are in `pinned`, also when it fails. */
class ImageFetch {
  readonly #parts: ImagesParts;
  readonly #client: RegistryClient;
  readonly #repository: string;
  readonly #pinned: Digest[];
  readonly #signal: AbortSignal;
  readonly #progress: FetchProgress;

  constructor(
    parts: ImagesParts,
    client: RegistryClient,
    repository: string,
    pinned: Digest[],
    signal: AbortSignal,
    progress: FetchProgress,
  ) {
    this.#parts = parts;
    this.#client = client;
    this.#repository = repository;
    this.#pinned = pinned;
    this.#signal = signal;
    this.#progress = progress;
  }

  async all(digest: Digest): Promise<void> {
    const { architecture } = this.#parts;
    const named = await this.#manifest(digest);
    const entry = named.kind === 'index' ? choosePlatform(named, architecture) : undefined;
    const manifest = entry === undefined ? named : await this.#manifest(entry.digest, entry);
    if (manifest.kind === 'index') {
      throw new OciError('malformed', 'the index of the image leads to another index');
    }
    await this.#blobs(manifest);
    const { config, layers } = manifest;
    const bytes = await readSmall(this.#parts.cache, config.digest, configBytesMax);
    const { os, architecture: found } = parseConfig(bytes, layers.length);
    if (os === 'linux' && found === architecture) return;
    const message = `the image is for ${os}/${found}; the runners here are linux/${architecture}`;
    throw new OciError('noPlatform', message.slice(0, 300));
  }

  async #manifest(digest: Digest, entry?: IndexEntry): Promise<Manifest | ImageIndex> {
    const ask = {
      ...{ cache: this.#parts.cache, registry: this.#client, repository: this.#repository },
      ...{ signal: this.#signal, pinned: this.#pinned },
    };
    return parseManifest(await cachedManifest(ask, digest, entry?.sizeBytes));
  }

  async #blobs({ config, layers }: Manifest): Promise<void> {
    const { cache } = this.#parts;
    const all = new Map<Digest, Descriptor>([config, ...layers].map((each) => [each.digest, each]));
    const allBytes = [...all.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    if (allBytes > cache.bytesMax) {
      const message = `the image has ${allBytes} bytes; the agent keeps at most ${cache.bytesMax}`;
      throw new OciError('tooLarge', `${message} (imageCacheBytesMax)`);
    }
    if (config.sizeBytes > configBytesMax) {
      throw new OciError('tooLarge', `its configuration has more than ${configBytesMax} bytes`);
    }
    const source = this.#client.blobs(this.#repository);
    let before = 0;
    for (const wanted of all.values()) {
      await cache.pin(wanted, source, this.#signal, (bytes) => {
        this.#progress(before + bytes, allBytes);
      });
      this.#pinned.push(wanted.digest);
      before += wanted.sizeBytes;
      this.#progress(before, allBytes);
    }
  }
}
