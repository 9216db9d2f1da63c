/**
 * Reads a file at any place out of a source that is best read from front to back.
 *
 * 1. The file is read in whole pieces; a few of them are kept, the others are read again.
 * 2. With digests of the pieces, only bytes that were hashed before are handed on: a server of the
 *    file cannot show one content for the check and another for use.
 */
import { createHash } from 'node:crypto';
import { ImageError } from './failure.ts';
import { type ByteSource, type ReadingLimits, readFrom } from './source.ts';

/** A file that can be read at any place. */
export interface Ranges {
  readonly sizeBytes: number;
  /** Exactly so many bytes, valid until the next call; throws `ImageError` beyond the end. */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** SHA-256 of each piece of a file that was verified by its digest. */
export interface PieceDigests {
  readonly sizeBytes: number;
  readonly digests: readonly Uint8Array[];
}

/** One piece, bytes. */
export const pieceBytes = 1024 * 1024;
/** Pieces kept: where the data is, and where tables are that lie elsewhere. */
const piecesKept = 8;
/** Pieces that are read and thrown away rather than a connection made anew. */
const piecesSkippedMax = 4;
/** So large a file is no image: its digests alone would fill the memory. */
const fileBytesMax = 16 * 1024 ** 4;

/** Reads the whole file once, and keeps the digest of each piece. Throws `ImageError`. */
export async function digestPieces(
  source: ByteSource,
  declared: { readonly sha256: string; readonly sizeBytes?: number | undefined },
  { signal, limits, progress }: ReadOptions,
): Promise<PieceDigests> {
  const whole = createHash('sha256');
  const digests: Uint8Array[] = [];
  let piece = createHash('sha256');
  let sizeBytes = 0;
  const chunks = readFrom(source, 0, declared.sizeBytes, signal, limits);
  for await (const chunk of chunks) {
    whole.update(chunk);
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + pieceBytes - (sizeBytes % pieceBytes));
      piece.update(part);
      at += part.length;
      sizeBytes += part.length;
      if (sizeBytes % pieceBytes === 0) {
        digests.push(piece.digest());
        piece = createHash('sha256');
      }
    }
    if (sizeBytes > fileBytesMax) throw new ImageError('tooLong', 'the image file does not end');
    progress?.(sizeBytes);
  }
  if (sizeBytes % pieceBytes !== 0) digests.push(piece.digest());
  checkDigest(whole.digest('hex'), declared.sha256);
  return { sizeBytes, digests };
}

/** Throws `ImageError` unless both are the same SHA-256. */
export function checkDigest(found: string, declared: string): void {
  if (found === declared) return;
  throw new ImageError('digestMismatch', `the image has the SHA-256 ${found}, not ${declared}`);
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  readonly limits?: ReadingLimits | undefined;
  /** Told how many bytes have been read. */
  readonly progress?: ((bytes: number) => void) | undefined;
}

/** `digests`: with them every piece is checked; without, its size has to be known. */
export function rangesOf(
  source: ByteSource,
  file: PieceDigests | { readonly sizeBytes: number },
  reading: ReadOptions,
): Ranges {
  return new PieceReader(source, file, reading);
}

class PieceReader implements Ranges {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  readonly #digests: readonly Uint8Array[] | undefined;
  readonly #reading: ReadOptions;
  /** By number; the most recently used is last. */
  readonly #kept = new Map<number, Uint8Array>();
  #stream: AsyncGenerator<Uint8Array, void, undefined> | undefined;
  /** The number of the next piece of the stream, and its bytes so far. */
  #next = 0;
  #rest: Uint8Array = new Uint8Array();

  constructor(
    source: ByteSource,
    file: PieceDigests | { readonly sizeBytes: number },
    reading: ReadOptions,
  ) {
    this.#source = source;
    this.sizeBytes = file.sizeBytes;
    this.#digests = 'digests' in file ? file.digests : undefined;
    this.#reading = reading;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + length > this.sizeBytes) {
      const range = `${length} bytes at ${offset}`;
      throw new ImageError('malformed', `the image speaks of ${range}, beyond its end`);
    }
    const first = Math.floor(offset / pieceBytes);
    const within = offset - first * pieceBytes;
    if (within + length <= pieceBytes) {
      return (await this.#piece(first)).subarray(within, within + length);
    }
    const whole = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const number = Math.floor((offset + at) / pieceBytes);
      const from = offset + at - number * pieceBytes;
      const part = (await this.#piece(number)).subarray(from, from + length - at);
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  async close(): Promise<void> {
    this.#kept.clear();
    const stream = this.#stream;
    this.#stream = undefined;
    await stream?.return();
  }

  async #piece(number: number): Promise<Uint8Array> {
    const kept = this.#kept.get(number);
    if (kept !== undefined) {
      this.#kept.delete(number);
      this.#kept.set(number, kept);
      return kept;
    }
    const isNear = number >= this.#next && number <= this.#next + piecesSkippedMax;
    if (this.#stream === undefined || !isNear) await this.#reopen(number);
    while (this.#next < number) await this.#take();
    return await this.#take();
  }

  async #reopen(number: number): Promise<void> {
    await this.#stream?.return();
    const { signal, limits } = this.#reading;
    this.#stream = readFrom(this.#source, number * pieceBytes, this.sizeBytes, signal, limits);
    this.#next = number;
    this.#rest = new Uint8Array();
  }

  /** The next piece of the stream, checked and kept. */
  async #take(): Promise<Uint8Array> {
    const number = this.#next;
    const piece = new Uint8Array(Math.min(pieceBytes, this.sizeBytes - number * pieceBytes));
    for (let at = 0; at < piece.length; ) {
      if (this.#rest.length === 0) {
        const next = await this.#stream?.next();
        if (next === undefined || next.done === true) {
          throw new ImageError('truncated', 'the image ends before it should');
        }
        this.#rest = next.value;
      }
      const part = this.#rest.subarray(0, piece.length - at);
      piece.set(part, at);
      at += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    this.#next = number + 1;
    this.#check(number, piece);
    this.#kept.set(number, piece);
    for (const old of this.#kept.keys()) {
      if (this.#kept.size <= piecesKept) break;
      this.#kept.delete(old);
    }
    return piece;
  }

  #check(number: number, piece: Uint8Array): void {
    if (this.#digests === undefined) return;
    const digest = createHash('sha256').update(piece).digest();
    if (this.#digests[number] !== undefined && digest.equals(this.#digests[number])) return;
    const pieceText = `piece ${number} of the image is not what was served before`;
    throw new ImageError('digestMismatch', pieceText);
  }
}
