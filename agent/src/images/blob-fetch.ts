/**
 * The fetch of one blob into a part file, until it is whole and durable.
 *
 * F1 A part that an earlier start or a broken connection left is hashed and continued. If the whole
 *    has another digest, the fetch begins again: once from the same source, then from each other
 *    source.
 * F2 A transient failure is retried as often as the caller says, after the caller's delays, or
 *    later when the other side asks for it.
 * F3 Received bytes are gathered in one buffer. A thread hashes them there while they are written.
 * F4 The error says that the disk is full only after everything that is not pinned has been
 *    dropped.
 */

import { copyInto, giveBack } from '@rackwright/bytes';
import {
  type BlobSource,
  type Descriptor,
  digestOfHex,
  isOciError,
  OciError,
  type ReadersHash,
  verifiedBlob,
} from '@rackwright/oci';
import {
  type Clock,
  type Hashes,
  type LargeFiles,
  type Log,
  markHandled,
  type PartFile,
  pause,
  type RunningHash,
} from '@rackwright/platform';

export interface BlobFetchParts {
  readonly files: LargeFiles;
  readonly hashes: Hashes;
  readonly clock: Clock;
  readonly log: Log;
  /** The part file. */
  readonly path: string;
  readonly folder: string;
  /** Drops the least recently used blob that is not pinned; false: there is none. */
  dropOldest(): Promise<boolean>;
  /** The total size of the blobs that `dropOldest` can drop. */
  droppableBytes(): number;
}

export interface BlobFetch {
  readonly wanted: Pick<Descriptor, 'digest' | 'sizeBytes'>;
  readonly source: BlobSource;
  /** Called with the size of the part file. */
  readonly onBytes: (bytes: number) => void;
  /** Called when the whole blob has its digest; it may not be durable yet. */
  readonly onProved: () => void;
  readonly signal: AbortSignal;
  /** The delay before each further try after a transient failure; empty: no retry. */
  readonly retryDelaysMs: readonly number[];
}

/** A registry that asks for a longer pause is not waited for. */
const retryAfterMsMax = 120_000;
/** The maximum number of tries in all. */
const attemptsMax = 64;

/** Rejects with `OciError`; received bytes stay in the part file unless they are useless. */
export async function fetchBlob(parts: BlobFetchParts, fetch: BlobFetch): Promise<void> {
  const delays = [...fetch.retryDelaysMs];
  await makeSpace(parts, fetch);
  for (let attempt = 1; ; attempt += 1) {
    try {
      await write(parts, fetch);
      return;
    } catch (error) {
      const failure = await afterFailure(parts, fetch, error, delays);
      if (failure !== undefined) throw failure.error;
      if (attempt >= attemptsMax) throw error;
    }
  }
}

/** The failure that ends the fetch; undefined if it is to be tried again. */
async function afterFailure(
  parts: BlobFetchParts,
  { wanted: { digest }, source, signal }: BlobFetch,
  error: unknown,
  delays: number[],
): Promise<{ readonly error: unknown } | undefined> {
  const { clock, folder, log } = parts;
  if (error instanceof PartOfNoUse) return undefined;
  if (isNoSpace(error)) {
    if (await parts.dropOldest()) return undefined;
    const message = `the disk of ${folder} is full of what is in use`;
    return { error: new OciError('noSpace', message) };
  }
  if (isOciError(error, 'digestMismatch', 'truncated') && source.elsewhere?.(digest) === true) {
    log.warn({ blob: digest }, 'asks elsewhere for a blob', error);
    return undefined;
  }
  if (!isOciError(error, 'unreachable', 'tooMany') || signal.aborted) return { error };
  const { retryAfterMs = 0 } = error;
  const delayMs = delays.shift();
  if (delayMs === undefined || retryAfterMs > retryAfterMsMax) return { error };
  const waitMs = Math.max(delayMs, retryAfterMs);
  log.debug({ blob: digest, waitMs }, 'a blob is asked for again later', error);
  await pause(clock, waitMs, signal);
  return undefined;
}

/** The part of an earlier start belonged to another blob; it was removed. */
class PartOfNoUse extends Error {}

async function write(parts: BlobFetchParts, fetch: BlobFetch): Promise<void> {
  const { files, hashes, path } = parts;
  const { onBytes, onProved, signal, source, wanted } = fetch;
  const part = await files.openPart(path);
  const running = hashes.start(wanted.sizeBytes);
  try {
    let bytes = part.sizeBytes;
    if (bytes > wanted.sizeBytes) {
      await emptied(part, onBytes);
      bytes = 0;
    }
    onBytes(bytes);
    const already = bytes > 0 ? { already: files.read(path) } : {};
    const writer = new GatheringWriter(part, running, onBytes, bytes);
    const hash: ReadersHash = {
      already: (some) => running.update(some),
      digest: async () => {
        await writer.flush();
        return digestOfHex(await running.digest());
      },
    };
    try {
      for await (const piece of verifiedBlob(source, wanted, { ...already, hash, signal })) {
        await writer.write(piece);
        giveBack(piece);
      }
    } finally {
      await writer.flush();
    }
    onProved();
    await part.sync();
  } catch (error) {
    if (!isOciError(error, 'digestMismatch')) throw error;
    await emptied(part, onBytes);
    throw part.sizeBytes === 0 ? error : new PartOfNoUse();
  } finally {
    running.close();
    await part.close();
  }
}

async function emptied(part: PartFile, onBytes: BlobFetch['onBytes']): Promise<void> {
  await part.empty();
  onBytes(0);
}

/** The size of one piece that is written and hashed. */
const gatherBytes = 1024 * 1024;
/** One is filled while the others are written and hashed. */
const gatherPieces = 4;
/** Received bytes are made durable so often, bytes, if the disk can: little is left at the end. */
const syncBytes = 32 * 1024 * 1024;

/** One piece of memory, which is shared with the hashing thread. */
interface HashBuffer {
  readonly bytes: Uint8Array;
  /** It has been hashed and written. */
  free: Promise<unknown>;
}

/** Writes and hashes the latest bytes while the next ones arrive (F3). */
class GatheringWriter {
  readonly #part: PartFile;
  readonly #hash: RunningHash;
  readonly #onBytes: BlobFetch['onBytes'];
  readonly #ring: readonly HashBuffer[];
  #handedOver = 0;
  #filled = 0;
  #written: number;
  #writing: Promise<void> = Promise.resolve();
  #syncing: Promise<void> = Promise.resolve();
  #sinceSync = 0;
  #isSyncing = false;

  constructor(
    part: PartFile,
    hash: RunningHash,
    onBytes: BlobFetch['onBytes'],
    writtenBytes: number,
  ) {
    this.#part = part;
    this.#hash = hash;
    this.#onBytes = onBytes;
    this.#written = writtenBytes;
    this.#ring = Array.from({ length: gatherPieces }, () => ({
      bytes: new Uint8Array(new SharedArrayBuffer(gatherBytes)),
      free: Promise.resolve(),
    }));
  }

  async write(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length; ) {
      const gathered = this.#gathered;
      if (this.#filled === 0) await gathered.free;
      const room = Math.min(piece.length - at, gatherBytes - this.#filled);
      copyInto(gathered.bytes, this.#filled, piece.subarray(at, at + room));
      this.#filled += room;
      at += room;
      if (this.#filled === gatherBytes) await this.#handOver();
    }
  }

  async flush(): Promise<void> {
    if (this.#filled > 0) await this.#handOver();
    await Promise.all([this.#writing, this.#syncing]);
  }

  get #gathered(): HashBuffer {
    return this.#ring[this.#handedOver % gatherPieces] as HashBuffer;
  }

  async #handOver(): Promise<void> {
    const gathered = this.#gathered;
    const bytes = gathered.bytes.subarray(0, this.#filled);
    this.#filled = 0;
    this.#handedOver += 1;
    const written = this.#writing.then(async () => {
      await this.#part.write(bytes);
      this.#written += bytes.length;
      this.#onBytes(this.#written);
    });
    gathered.free = Promise.all([this.#hash.update(bytes), written]);
    this.#writing = written;
    // The next user of that buffer, or the next flush, gets the error.
    for (const each of [written, gathered.free]) markHandled(each);
    this.#sinceSync += bytes.length;
    // A reader of these bytes does not wait for the disk.
    if (this.#sinceSync < syncBytes || this.#isSyncing) return;
    // The sync is over: this await only rejects with a failure of the disk.
    await this.#syncing;
    this.#sinceSync = 0;
    this.#isSyncing = true;
    this.#syncing = this.#part.sync().finally(() => {
      this.#isSyncing = false;
    });
    markHandled(this.#syncing);
  }
}

/** F4, before the first request. */
async function makeSpace(parts: BlobFetchParts, { wanted }: BlobFetch): Promise<void> {
  const { files, folder, path } = parts;
  const part = await files.openPart(path);
  await part.close();
  const needed = wanted.sizeBytes - Math.min(part.sizeBytes, wanted.sizeBytes);
  for (;;) {
    const free = await files.freeBytes(folder);
    if (free >= needed) return;
    if (free + parts.droppableBytes() >= needed && (await parts.dropOldest())) continue;
    const message = `the image needs ${needed} bytes in ${folder}, whose disk has ${free} left`;
    throw new OciError('noSpace', message);
  }
}

function isNoSpace(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(ENOSPC|EDQUOT)$/.test(String(error.code));
}
