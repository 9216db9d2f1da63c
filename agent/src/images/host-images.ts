/**
 * Images for hosts: disks, and kernels to boot without one. Each is fetched once into the rack's
 * cache, however many hosts ask, and pinned while any of them may read it.
 *
 * 1. What is named by no digest is not fetched.
 * 2. A bounded number of hosts is admitted at once (`ImageAdmission`). An admitted host has its
 *    share of the rack's network and disk until it releases it.
 * 3. The end of an image is withheld until the image is verified. It is whole when every part that
 *    is needed is here and matches its digest. A host that writes it while it is fetched reports
 *    nothing as done before that.
 * 4. An image has begun to come when its source has sent some of it. An image that is unavailable,
 *    or not for this machine, has not.
 */
import {
  type Architecture,
  type BlobSource,
  type DeclaredDisk,
  type Descriptor,
  type Digest,
  type DiskImage,
  findHostImage,
  type HostImage,
  type Mirror,
  MirroredRegistry,
  OciError,
  parseReference,
  type RegistryCredential,
  WebFile,
  type WebFileAccess,
} from '@rackwright/oci';
import type { WebClient } from '@rackwright/platform';
import { type AdmissionLimits, ImageAdmission, type ImageRequester } from './admission.ts';
import type { BlobCache } from './blob-cache.ts';
import { cachedManifest } from './cached-manifest.ts';

/** The source of an image, and its needed parts. */
export interface WantedHostImage {
  readonly from: FromRegistry | FromWeb;
  readonly architecture: Architecture;
  readonly needs: 'disk' | 'netboot';
}

export interface FromRegistry {
  readonly kind: 'registry';
  /** "registry/repository@sha256:HEX" */
  readonly reference: string;
  readonly plainHttp: boolean;
  readonly credential: RegistryCredential | undefined;
  readonly caPem?: string;
  readonly tokenService?: string;
  readonly internal?: readonly string[];
  readonly mirrors: readonly Mirror[];
}

/** A disk as a file. */
export interface FromWeb
  extends WebFileAccess,
    DeclaredDisk,
    Pick<DiskImage, 'contentBytes' | 'contentDigest'> {
  readonly kind: 'web';
  /** The digest of the file as it is fetched. */
  readonly digest: Digest;
}

export type HostImageProgress =
  /** 1 is next. */
  | { readonly phase: 'queued'; readonly position: number }
  /** It is admitted, whether it had to wait or not. */
  | { readonly phase: 'admitted' }
  | { readonly phase: 'fetching'; readonly fetchedBytes: number; readonly allBytes: number };

/** An image that stays until it is released. */
export interface PinnedHostImage {
  readonly image: HostImage;
  /** All that is pinned of it, manifests included. */
  readonly digests: readonly Digest[];
  /** Keeps the image and releases the slot. */
  giveBackSlot(): void;
  /** False when some of it was lost or damaged meanwhile. Pinning it again fetches that part. */
  isWhole(): Promise<boolean>;
  /** Its reader found it wrong, or could not read it: see `BlobCache.doubt`. */
  doubt(): void;
  release(): void;
}

/** An image that is on its way, or here; it stays until it is released. */
export interface ComingHostImage extends PinnedHostImage {
  /** Resolves when it is here whole and proved. Rejects with `OciError`, and never unheard. */
  readonly whole: Promise<void>;
  /** Aborted when the fetch begins anew: the bytes that were read so far are wrong. */
  readonly restarted: AbortSignal;
}

export interface HostImagesParts {
  readonly cache: BlobCache;
  readonly web: WebClient;
  readonly admission: AdmissionLimits;
  /** The delay before each further try after a transient failure. */
  readonly retryDelaysMs: readonly number[];
}

export const defaultRetryDelaysMs: readonly number[] = [1_000, 2_000, 4_000, 8_000, 16_000];

type ReportProgress = (progress: HostImageProgress) => void;

/** The callbacks of one fetch. */
interface Fetch {
  readonly signal: AbortSignal;
  readonly report: ReportProgress;
  /** The blob is pinned now. */
  readonly keep: (digest: Digest) => void;
  /** Its source has sent some of it. */
  readonly begun: () => void;
  /** The bytes since then were discarded, and the fetch begins anew. */
  readonly anew: () => void;
}

export class HostImages {
  readonly #parts: HostImagesParts;
  readonly #admission: ImageAdmission;

  constructor(parts: HostImagesParts) {
    this.#parts = parts;
    this.#admission = new ImageAdmission(parts.admission);
  }

  /**
   * Resolves when the image is here whole. Rejects with `OciError`, and then pins nothing.
   */
  async pin(
    requester: ImageRequester,
    wanted: WantedHostImage,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<ComingHostImage> {
    const coming = await this.begin(requester, wanted, signal, report);
    try {
      await coming.whole;
      return coming;
    } catch (error) {
      coming.release();
      throw error;
    }
  }

  /**
   * Resolves when the image's fetch has begun, or it is here (4). Rejects with `OciError`, and then
   * pins nothing.
   */
  async begin(
    requester: ImageRequester,
    wanted: WantedHostImage,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<ComingHostImage> {
    const { cache } = this.#parts;
    const leave = await this.#admission.enter(requester, signal, (position) =>
      report({ phase: 'queued', position }),
    );
    report({ phase: 'admitted' });
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    const pinned: Digest[] = [];
    let isOver = false;
    const release = (): void => {
      isOver = true;
      stop.abort();
      for (const each of pinned.splice(0)) cache.unpin(each);
      leave();
    };
    const keep = (digest: Digest): void => {
      if (isOver) cache.unpin(digest);
      else pinned.push(digest);
    };
    try {
      const { image, source } = await this.#find(wanted, either, pinned);
      const begun = Promise.withResolvers<void>();
      const anew = new AbortController();
      const observers = { begun: begun.resolve, anew: () => anew.abort() };
      const fetch = { signal: either, report, keep, ...observers };
      const whole = this.#fetch(blobsOf(image, wanted.needs), source, fetch);
      whole.then(begun.resolve, begun.reject);
      await begun.promise;
      const doubt = (): void => pinned.forEach((each) => cache.doubt(each));
      const isWhole = () => this.#isWhole(pinned);
      const acts = { giveBackSlot: leave, isWhole, doubt, release };
      return { image, digests: pinned, whole, restarted: anew.signal, ...acts };
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * Brings an image into the cache before a host needs it, and returns its parts there. Rejects
   * with `OciError`.
   */
  async prefetch(
    wanted: WantedHostImage,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<readonly Digest[]> {
    const pinned = await this.pin('prefetch', wanted, signal, report);
    const digests = [...pinned.digests];
    pinned.release();
    return digests;
  }

  /** Whether all of it is here whole. */
  isHere(digests: readonly Digest[]): boolean {
    return digests.every((digest) => this.#parts.cache.find(digest) !== undefined);
  }

  /** Whether so many bytes fit without dropping anything that is pinned or preferred. */
  hasRoom(bytes: number): boolean {
    return bytes <= this.#parts.cache.roomBytes;
  }

  /**
   * These are kept in preference to everything that is not pinned, while there is room; no others
   * are.
   */
  prefer(digests: Iterable<Digest>): void {
    this.#parts.cache.prefer(digests);
  }

  async #isWhole(digests: readonly Digest[]): Promise<boolean> {
    const { cache } = this.#parts;
    for (const digest of digests) {
      if (!(await cache.pinIfHere(digest))) return false;
      cache.unpin(digest);
    }
    return true;
  }

  async #find(
    { from, architecture }: WantedHostImage,
    signal: AbortSignal,
    pinned: Digest[],
  ): Promise<{ image: HostImage; source: BlobSource }> {
    const { cache, web } = this.#parts;
    if (from.kind === 'web') {
      const source = new WebFile(web, from);
      if (await cache.pinIfHere(from.digest)) pinned.push(from.digest);
      const sizeBytes = cache.find(from.digest)?.sizeBytes ?? (await source.sizeBytes(signal));
      return { image: imageOf(from, sizeBytes, architecture), source };
    }
    const read = parseReference(from.reference);
    if (read.kind === 'bad') throw new OciError('malformed', `the image ${read.problem}`);
    const { registry: name, repository, digest } = read.reference;
    if (digest === undefined) throw new OciError('malformed', 'the image is named by no digest');
    const access = { ...from, registry: name };
    const registry = new MirroredRegistry(web, access, from.mirrors);
    const ask = { cache, registry, repository, signal, pinned };
    const { image } = await findHostImage(digest, architecture, (each, sizeBytes) =>
      cachedManifest(ask, each, sizeBytes),
    );
    return { image, source: registry.blobs(repository) };
  }

  async #fetch(
    blobs: readonly Descriptor[],
    source: BlobSource,
    { signal, report, keep, begun, anew }: Fetch,
  ): Promise<void> {
    const { cache, retryDelaysMs } = this.#parts;
    const allBytes = blobs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    if (allBytes > cache.bytesMax) {
      const message = `the image has ${allBytes} bytes; the agent keeps at most ${cache.bytesMax}`;
      throw new OciError('tooLarge', `${message} (imageCacheBytesMax)`);
    }
    let hasBegun = false;
    let isThrownAway = false;
    const fetched = new Map<Digest, number>();
    const tell = (digest: Digest, bytes: number): void => {
      const before = fetched.get(digest);
      fetched.set(digest, bytes);
      // Bytes that were here before were not sent by a source (4).
      if (before !== undefined && bytes > before) {
        if (isThrownAway) anew();
        hasBegun = true;
        begun();
      }
      if (hasBegun && bytes < (before ?? 0)) isThrownAway = true;
      const fetchedBytes = [...fetched.values()].reduce((sum, each) => sum + each, 0);
      report({ phase: 'fetching', fetchedBytes, allBytes });
    };
    const fetches = blobs.map(async (blob) => {
      const { digest, sizeBytes } = blob;
      const onBytes = (bytes: number): void => tell(digest, bytes);
      await cache.pin(blob, source, signal, onBytes, retryDelaysMs);
      keep(digest);
      tell(digest, sizeBytes);
    });
    await Promise.all(fetches);
  }
}

function imageOf(from: FromWeb, sizeBytes: number, architecture: Architecture): HostImage {
  const { digest, format, compression, contentBytes, contentDigest } = from;
  const blob = { mediaType: 'application/octet-stream', digest, sizeBytes };
  return {
    version: '',
    disk: {
      ...{ blob, architecture },
      ...(format === undefined ? {} : { format }),
      ...(compression === undefined ? {} : { compression }),
      ...(contentBytes === undefined ? {} : { contentBytes }),
      ...(contentDigest === undefined ? {} : { contentDigest }),
    },
  };
}

function blobsOf({ disk, netboot }: HostImage, needs: 'disk' | 'netboot'): Descriptor[] {
  if (needs === 'disk' && disk !== undefined) return [disk.blob];
  if (needs === 'netboot' && netboot !== undefined) {
    const all = [netboot.kernel, ...netboot.initrds];
    return [...new Map(all.map((each) => [each.digest, each])).values()];
  }
  const target = needs === 'disk' ? 'disk' : 'kernel to boot over the network';
  throw new OciError('malformed', `the image has no ${target}`);
}
