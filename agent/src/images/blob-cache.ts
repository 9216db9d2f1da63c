/**
 * Blobs of images on the agent's disk, by digest. All of it may be lost: it is fetched again.
 *
 * B1 A file gets its final name only after its digest was verified and its bytes are durable. So no
 *    crash leaves a part under the name of the whole. A part that was left is hashed and continued.
 *    If its end has another digest, the fetch begins anew.
 * B2 A blob of an earlier start is hashed before its first use in this one. A blob is also hashed
 *    again when its file has changed since the last check, or when a reader has reported it
 *    damaged.
 * B3 The files together, including parts and fetches under way, have at most `bytesMax` bytes. The
 *    least recently used file goes first, preferred ones last; pinned ones stay. Nothing is dropped
 *    for a blob that would not fit even then.
 * B4 A blob that several callers want is fetched once. The fetch stops when none of them wants it
 *    any more. When the registry of one caller refuses, a caller that has joined its fetch asks its
 *    own registry.
 * B5 A pinned blob was verified in this life, and it is never dropped. If it is lost or damaged all
 *    the same, the next request notices that and fetches it again.
 * B6 While the folder cannot be used, blobs cannot be pinned; nothing else is affected.
 * B7 A blob may be read while it is fetched, except for its end (`coming-bytes.ts`).
 */
import {
  type BlobSource,
  type Descriptor,
  type Digest,
  digestOfHex,
  hexOf,
  isOciError,
  OciError,
  type OciFailureKind,
  parseDigest,
  type ReadersHash,
  verifiedBlob,
} from '@rackwright/oci';
import {
  type Clock,
  type Hashes,
  type LargeFiles,
  type Log,
  markHandled,
  whenSettled,
} from '@rackwright/platform';
import { type BlobFetch, fetchBlob } from './blob-fetch.ts';
import { ComingBytes, type Readable } from './coming-bytes.ts';

export interface BlobCacheParts {
  readonly files: LargeFiles;
  readonly hashes: Hashes;
  readonly clock: Clock;
  readonly log: Log;
  /** A folder of its own. */
  readonly folder: string;
  /** Makes the folder. Absent: the folder exists. */
  readonly prepare?: () => Promise<void>;
  readonly bytesMax: number;
}

/** A complete blob on the disk, to be served. */
export interface BlobFile {
  readonly path: string;
  readonly sizeBytes: number;
}

/** A blob that is being fetched, for one reader. Its file may have been renamed meanwhile. */
export interface ComingBlob extends BlobFile {
  readonly readable: Readable;
}

type WantedBlob = Pick<Descriptor, 'digest' | 'sizeBytes'>;

interface Entry {
  readonly sizeBytes: number;
  usedAtMs: number;
  /** The file's size and time at its last verification (B2); undefined: unknown. */
  proved?: FileReading | undefined;
  /** Set while it is checked; every further reader waits for it. */
  proving?: Promise<boolean> | undefined;
}

type FileReading = Awaited<ReturnType<LargeFiles['find']>>;

interface Fetching {
  readonly sizeBytes: number;
  readonly coming: ComingBytes;
  readonly done: Promise<void>;
  readonly stop: AbortController;
  readonly observers: Set<(bytes: number) => void>;
}

const partSuffix = '.part';
/** However small they are. */
const blobsMax = 10_000;
/** Failures that another registry may not give; all others may pass, or are of this machine. */
const refusals = [
  'unauthorized',
  'untrusted',
  'forbidden',
  'refused',
  'notFound',
  'digestMismatch',
  'truncated',
  'malformed',
] as const satisfies readonly OciFailureKind[];

export class BlobCache {
  readonly #parts: BlobCacheParts;
  readonly #entries = new Map<Digest, Entry>();
  /** Only of pinned blobs; the count also stays while a lost blob is fetched again. */
  readonly #pins = new Map<Digest, number>();
  readonly #fetching = new Map<Digest, Fetching>();
  /** Parts that an earlier start or a failure left, and their sizes. */
  readonly #left = new Map<Digest, number>();
  #preferred: ReadonlySet<Digest> = new Set();
  /** Undefined as long as the folder could not be read (B6). */
  #loaded: Promise<void> | undefined;

  private constructor(parts: BlobCacheParts) {
    this.#parts = parts;
  }

  /** Adopts the folder's content, as soon as it can be read (B6). */
  static async open(parts: BlobCacheParts): Promise<BlobCache> {
    const cache = new BlobCache(parts);
    await cache.#load().catch((error: unknown) => {
      parts.log.error({}, 'the image cache cannot be read', error);
    });
    return cache;
  }

  /** Largest image that fits at all. */
  get bytesMax(): number {
    return this.#parts.bytesMax;
  }

  /** The blob, if it is here whole. */
  find(digest: Digest): BlobFile | undefined {
    const entry = this.#entries.get(digest);
    return entry && { path: this.#path(digest), sizeBytes: entry.sizeBytes };
  }

  /** The blob, if it is on its way (B7). */
  coming(digest: Digest): ComingBlob | undefined {
    const fetching = this.#fetching.get(digest);
    if (fetching === undefined || fetching.stop.signal.aborted) return undefined;
    const { sizeBytes, coming } = fetching;
    return { path: partOf(this.#path(digest)), sizeBytes, readable: coming.reader() };
  }

  /** The space for new blobs without dropping any that is pinned, preferred or under way. */
  get roomBytes(): number {
    return this.#roomBeside((digest) => this.#pins.has(digest) || this.#preferred.has(digest));
  }

  #roomBeside(stays: (digest: Digest) => boolean): number {
    let bytes = this.#parts.bytesMax;
    for (const [digest, { sizeBytes }] of this.#entries) if (stays(digest)) bytes -= sizeBytes;
    for (const { sizeBytes } of this.#fetching.values()) bytes -= sizeBytes;
    return bytes;
  }

  /** Whether a part of it is here, so that a fetch continues it. */
  isBegun(digest: Digest): boolean {
    return (this.#left.get(digest) ?? 0) > 0 || this.#fetching.has(digest);
  }

  /** Its bytes, of a blob that is pinned. */
  read(digest: Digest): AsyncIterable<Uint8Array> {
    return this.#parts.files.read(this.#path(digest));
  }

  /** True when the blob is here whole, or now pinned; see `pin`. */
  async pinIfHere(digest: Digest): Promise<boolean> {
    // A blob in an unreadable folder counts as absent; a later fetch reports the error.
    await this.#load().catch(() => {});
    const entry = this.#entries.get(digest);
    if (entry === undefined) return false;
    this.#pins.set(digest, (this.#pins.get(digest) ?? 0) + 1);
    entry.usedAtMs = this.#parts.clock.nowMs();
    entry.proving ??= this.#prove(digest, entry);
    if (await entry.proving) return true;
    this.unpin(digest);
    // Other callers that have waited for the same proof find the blob gone, or fetched anew.
    if (this.#entries.get(digest) !== entry) return false;
    this.#entries.delete(digest);
    await this.#remove(this.#path(digest));
    return false;
  }

  /**
   * Fetches the blob if it is not here, and keeps it until `unpin`. Rejects with `OciError`, and
   * then pins nothing. `onBytes` receives the number of bytes that are here. The caller that
   * begins the fetch sets its retries: `retryDelaysMs`, see `BlobFetch`.
   */
  async pin(
    wanted: WantedBlob,
    source: BlobSource,
    signal: AbortSignal,
    onBytes: (bytes: number) => void,
    retryDelaysMs: readonly number[] = [],
  ): Promise<void> {
    const { digest } = wanted;
    await this.#load();
    while (!(await this.pinIfHere(digest))) {
      if (signal.aborted) throw new OciError('cancelled', 'given up');
      const joined = this.#fetching.get(digest);
      const fetching = joined ?? this.#begin(wanted, source, retryDelaysMs);
      try {
        // A fetch that its last caller has left is not joined; this waits for its end.
        if (fetching.stop.signal.aborted) await whenSettled(fetching.done);
        else await this.#follow(fetching, signal, onBytes);
      } catch (error) {
        const isOthers = joined !== undefined && isOciError(error, ...refusals);
        if (!isOthers || signal.aborted) throw error;
      }
    }
  }

  /** Ends one `pin`. */
  unpin(digest: Digest): void {
    const pins = (this.#pins.get(digest) ?? 0) - 1;
    if (pins > 0) this.#pins.set(digest, pins);
    else this.#pins.delete(digest);
  }

  /** A reader found it wrong, or could not read it: it is hashed before it is used again. */
  doubt(digest: Digest): void {
    const entry = this.#entries.get(digest);
    if (entry !== undefined) entry.proved = undefined;
  }

  /** Preferred blobs go only when nothing else can; earlier preferred ones go like any other. */
  prefer(digests: Iterable<Digest>): void {
    this.#preferred = new Set(digests);
  }

  #load(): Promise<void> {
    this.#loaded ??= this.#takeUp().catch((error: unknown) => {
      this.#loaded = undefined;
      throw this.#failureOf(error);
    });
    return this.#loaded;
  }

  async #prepareAnew(): Promise<void> {
    const { prepare, log } = this.#parts;
    await prepare?.().catch((error: unknown) =>
      log.warn({}, 'the folder of the image cache cannot be prepared', error),
    );
  }

  async #takeUp(): Promise<void> {
    const { files, folder, log, prepare } = this.#parts;
    await prepare?.();
    for (const { name, sizeBytes, usedAtMs } of await files.list(folder)) {
      const isPart = name.endsWith(partSuffix);
      const hex = isPart ? name.slice(0, -partSuffix.length) : name;
      const digest = parseDigest(`sha256:${hex}`);
      if (digest === undefined) continue;
      if (isPart) this.#left.set(digest, sizeBytes);
      else this.#entries.set(digest, { sizeBytes, usedAtMs });
    }
    // The limit may have been lowered.
    await this.#makeRoom();
    if (this.#entries.size > 0) log.debug({ blobs: this.#entries.size }, 'image cache');
  }

  /** B2. An unreadable file counts as wrong. */
  async #prove(digest: Digest, entry: Entry): Promise<boolean> {
    const { files, log } = this.#parts;
    const path = this.#path(digest);
    try {
      const found = await files.find(path);
      if (!isSameFile(found, entry.proved)) await this.#hash(digest, entry);
      entry.proved = await this.#touched(path, entry);
      return true;
    } catch (error) {
      log.warn({ blob: digest }, 'a cached blob was damaged; dropped it', error);
      return false;
    } finally {
      entry.proving = undefined;
    }
  }

  /** The file's state now that its time of use is recorded. */
  async #touched(path: string, { usedAtMs }: Entry): Promise<FileReading> {
    const { files, log } = this.#parts;
    await files.touch(path, usedAtMs).catch((error: unknown) => {
      // After a restart its last use seems earlier than it was.
      log.warn({ path }, 'when a blob was used is not noted', error);
    });
    return files.find(path);
  }

  async #hash(digest: Digest, { sizeBytes }: Entry): Promise<void> {
    const running = this.#parts.hashes.start(sizeBytes);
    const hash: ReadersHash = {
      already: (some) => running.update(some),
      digest: async () => digestOfHex(await running.digest()),
    };
    try {
      const reading = { already: this.read(digest), hash };
      for await (const _ of verifiedBlob(nowhere, { digest, sizeBytes }, reading));
    } finally {
      running.close();
    }
  }

  #begin(wanted: WantedBlob, source: BlobSource, retryDelaysMs: readonly number[]): Fetching {
    const { digest, sizeBytes } = wanted;
    const stop = new AbortController();
    const coming = new ComingBytes(sizeBytes);
    // The source does not send the bytes of an earlier part again, so they count as received here.
    coming.have(this.#left.get(digest) ?? 0);
    // An entry in the map counts as used space, so it is added before room is made (B3).
    const started = Promise.withResolvers<void>();
    const done = started.promise
      .then(() => this.#makeRoom())
      .then(() =>
        this.#fetch({ wanted, source, onBytes, onProved, signal: stop.signal, retryDelaysMs }),
      )
      .catch(async (error: unknown) => {
        // The next try may find it there.
        if (!isOciError(error)) await this.#prepareAnew();
        throw this.#failureOf(error);
      })
      .finally(() => {
        this.#fetching.delete(digest);
        coming.end('failed');
      });
    const onProved = (): void => coming.end('proved');
    const fetching: Fetching = { sizeBytes, coming, done, stop, observers: new Set() };
    const onBytes = (bytes: number): void => {
      coming.have(bytes);
      // The part that stays if the fetch ends here.
      this.#left.set(digest, bytes);
      for (const observer of fetching.observers) observer(bytes);
    };
    this.#fetching.set(digest, fetching);
    started.resolve();
    return fetching;
  }

  /** Joins a fetch under way; the last caller that leaves stops it (B4). */
  async #follow(
    { coming, done, observers, stop }: Fetching,
    signal: AbortSignal,
    onBytes: (bytes: number) => void,
  ): Promise<void> {
    const observer = (bytes: number): void => onBytes(bytes);
    observers.add(observer);
    onBytes(coming.bytes);
    const gone = Promise.withResolvers<never>();
    const leave = (): void => {
      observers.delete(observer);
      if (observers.size === 0) stop.abort();
      gone.reject(new OciError('cancelled', 'given up'));
    };
    signal.addEventListener('abort', leave, { once: true });
    markHandled(gone.promise);
    try {
      if (signal.aborted) leave();
      await Promise.race([done, gone.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      observers.delete(observer);
    }
  }

  /** B1. */
  async #fetch(fetch: BlobFetch): Promise<void> {
    const { clock, files, folder, hashes, log } = this.#parts;
    const { digest, sizeBytes } = fetch.wanted;
    const finalPath = this.#path(digest);
    const path = partOf(finalPath);
    const drops = {
      dropOldest: () => this.#dropOldest(),
      droppableBytes: () => this.#free().reduce((sum, [, entry]) => sum + entry.sizeBytes, 0),
    };
    await fetchBlob({ clock, files, folder, hashes, log, path, ...drops }, fetch);
    await files.rename(path, finalPath);
    this.#left.delete(digest);
    const usedAtMs = clock.nowMs();
    this.#entries.set(digest, { sizeBytes, usedAtMs, proved: await files.find(finalPath) });
  }

  /** B3: drops files until all of it fits. */
  async #makeRoom(): Promise<void> {
    const { bytesMax } = this.#parts;
    const message = `the image cache of ${bytesMax} bytes is full of images that are in use`;
    if (this.#roomBeside((digest) => this.#pins.has(digest)) < 0) {
      throw new OciError('unreachable', message);
    }
    for (const [digest, sizeBytes] of [...this.#left]) {
      if (this.#fits()) return;
      if (this.#fetching.has(digest) || sizeBytes === 0) continue;
      this.#left.delete(digest);
      await this.#remove(partOf(this.#path(digest)));
    }
    while (!this.#fits() && (await this.#dropOldest()));
    if (this.#fits()) return;
    throw new OciError('unreachable', message);
  }

  async #dropOldest(): Promise<boolean> {
    const isPreferred = (digest: Digest): number => (this.#preferred.has(digest) ? 1 : 0);
    const [oldest] = this.#free().sort(
      ([one, a], [other, b]) => isPreferred(one) - isPreferred(other) || a.usedAtMs - b.usedAtMs,
    );
    if (oldest === undefined) return false;
    const [digest] = oldest;
    this.#entries.delete(digest);
    await this.#remove(this.#path(digest));
    return true;
  }

  /** Entries that are not pinned. */
  #free(): [Digest, Entry][] {
    return [...this.#entries].filter(([digest]) => !this.#pins.has(digest));
  }

  /** A file that cannot be removed is unusable all the same. */
  async #remove(path: string): Promise<void> {
    const { files, log } = this.#parts;
    await files.remove(path).catch((error: unknown) => {
      log.warn({ path }, 'a file of the image cache cannot be removed', error);
    });
  }

  /** A failure of our disk, as a failure for callers that wait for an image (B6). */
  #failureOf(error: unknown): unknown {
    if (!(error instanceof Error && 'errno' in error)) return error;
    const message = `the image cache in ${this.#parts.folder} cannot be used: ${error.message}`;
    return new OciError('noSpace', message);
  }

  #fits(): boolean {
    const blobs = this.#entries.size + this.#fetching.size;
    return blobs <= blobsMax && this.#used() <= this.#parts.bytesMax;
  }

  #used(): number {
    let bytes = 0;
    for (const { sizeBytes } of this.#entries.values()) bytes += sizeBytes;
    for (const { sizeBytes } of this.#fetching.values()) bytes += sizeBytes;
    for (const [digest, sizeBytes] of this.#left) {
      if (!this.#fetching.has(digest)) bytes += sizeBytes;
    }
    return bytes;
  }

  #path(digest: Digest): string {
    return `${this.#parts.folder}/${hexOf(digest)}`;
  }
}

function isSameFile(one: FileReading, other: FileReading): boolean {
  if (one === undefined || other === undefined) return false;
  return one.sizeBytes === other.sizeBytes && one.usedAtMs === other.usedAtMs;
}

function partOf(path: string): string {
  return `${path}${partSuffix}`;
}

/** For a blob that is complete: nothing may be read from a source. */
const nowhere: BlobSource = {
  open: async () => {
    throw new OciError('digestMismatch', 'it is shorter than it was');
  },
};
