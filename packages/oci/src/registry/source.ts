/**
 * Blobs as streams: counted, hashed, and resumed where a connection broke.
 *
 * 1. Not one byte more than the descriptor names is handed on.
 * 2. The last piece has been handed on before the digest is known: a reader must discard its output
 *    when the reading throws.
 * 3. A reader that hashes everything in a thread of its own is asked for the digest at the end.
 */
import { WebBroken, WebTooSlow } from '@rackwright/platform';
import { type Digest, RunningDigest } from '../digest.ts';
import { OciError } from '../failure.ts';
import type { Descriptor } from '../manifest.ts';

export interface OpenBlob {
  /** Where it begins: the requested offset, or 0 when ranges are not served. */
  readonly start: number;
  /** The reader owns each chunk: it may be empty when the next is requested. */
  readonly chunks: AsyncIterable<Uint8Array>;
  close(): void;
}

/** Somebody who has blobs. */
export interface BlobSource {
  /** Rejects with `OciError`. `chunks` throws `WebBroken` when the connection breaks. */
  open(digest: Digest, from: number, signal: AbortSignal | undefined): Promise<OpenBlob>;
  /**
   * Called when the received bytes are not the blob, or almost none arrive. True: another source is
   * asked from now on.
   */
  elsewhere?(digest: Digest): boolean;
}

/** The hash of a blob, made by its reader. */
export interface ReadersHash {
  /** A piece of the content that was there already. */
  already(bytes: Uint8Array): Promise<unknown>;
  /** The digest of that and of all that was handed on; called once, at the end. */
  digest(): Promise<Digest>;
}

export interface BlobReading {
  /** The content that is there already, from the start on; it is hashed and not handed on. */
  readonly already?: AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
  /** Absent: each piece is hashed here, before it is handed on. */
  readonly hash?: ReadersHash;
  /** Connections that may break without having brought anything, or too slowly. */
  readonly emptyBreaksMax?: number;
}

const emptyBreaksMaxDefault = 3;
/** However much each connection brought. */
const breaksMax = 64;

/**
 * The blob from where `already` ends, in pieces that are the reader's own. Throws `OciError`:
 * `digestMismatch` only at the very end, `truncated` when its source reports an earlier end,
 * `cancelled` when the signal broke the connection.
 */
export async function* verifiedBlob(
  source: BlobSource,
  { digest, sizeBytes }: Pick<Descriptor, 'digest' | 'sizeBytes'>,
  { already, signal, hash, emptyBreaksMax = emptyBreaksMaxDefault }: BlobReading = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const running = new RunningBlob(hash);
  for await (const part of already ?? []) await running.already(part);
  let emptyBreaks = 0;
  for (let breaks = 1; running.bytes < sizeBytes; breaks += 1) {
    const before = running.bytes;
    const broken = yield* pieces(source, { digest, sizeBytes }, running, signal);
    if (broken === undefined) break;
    if (signal?.aborted === true) throw new OciError('cancelled', 'given up');
    const isEmpty = running.bytes === before || broken instanceof WebTooSlow;
    emptyBreaks = isEmpty ? emptyBreaks + 1 : 0;
    if (emptyBreaks < emptyBreaksMax && breaks < breaksMax) continue;
    if (source.elsewhere?.(digest) !== true) {
      throw new OciError('unreachable', `blob ${digest}: ${broken.message}`);
    }
    [breaks, emptyBreaks] = [0, 0];
  }
  if (running.bytes < sizeBytes) {
    const sizes = `ends after ${running.bytes} of its ${sizeBytes} bytes`;
    throw new OciError('truncated', `blob ${digest} ${sizes}`);
  }
  const found = await running.digest();
  if (found !== digest) {
    throw new OciError('digestMismatch', `what came is not blob ${digest} but ${found}`);
  }
}

/** The bytes so far, and their hash. */
class RunningBlob {
  readonly #own = new RunningDigest();
  readonly #readers: ReadersHash | undefined;
  bytes = 0;

  constructor(readers: ReadersHash | undefined) {
    this.#readers = readers;
  }

  async already(part: Uint8Array): Promise<void> {
    this.bytes += part.length;
    if (this.#readers === undefined) this.#own.update(part);
    else await this.#readers.already(part);
  }

  fresh(piece: Uint8Array): void {
    this.bytes += piece.length;
    if (this.#readers === undefined) this.#own.update(piece);
  }

  digest(): Promise<Digest> | Digest {
    return this.#readers?.digest() ?? this.#own.digest();
  }
}

/** One connection's worth; answers why it broke, or nothing at its end. */
async function* pieces(
  source: BlobSource,
  { digest, sizeBytes }: Pick<Descriptor, 'digest' | 'sizeBytes'>,
  running: RunningBlob,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, WebBroken | undefined, undefined> {
  const blob = await source.open(digest, running.bytes, signal);
  // A source without ranges sends these bytes once more.
  let known = running.bytes - blob.start;
  try {
    for await (const chunk of blob.chunks) {
      const fresh = chunk.subarray(Math.min(known, chunk.length));
      known -= chunk.length - fresh.length;
      if (fresh.length === 0) continue;
      if (running.bytes + fresh.length > sizeBytes) {
        const message = `blob ${digest} is longer than the ${sizeBytes} bytes that it should have`;
        throw new OciError('digestMismatch', message);
      }
      running.fresh(fresh);
      yield fresh;
    }
    return undefined;
  } catch (error) {
    if (error instanceof WebBroken) return error;
    throw error;
  } finally {
    blob.close();
  }
}
