/**
 * The bytes that burn-ins write and expect: they follow from a seed, and each unit has a stamp of
 * its place. So a unit from another place, or of another seed, differs.
 */
import { createCipheriv, createHash } from 'node:crypto';

/** Longest piece that is written at once, bytes. */
export const pieceBytesMax = 1024 * 1024;

export interface PatternDifference {
  /** Units that differ. */
  readonly units: number;
  /** The beginning of the first one in the piece, and its first byte that differs. */
  readonly unitOffset: number;
  readonly byteOffset: number;
  /** Bits in which that byte differs. */
  readonly bits: number;
  /** The offset at which the first unit would be right; undefined: none is known. */
  readonly belongsAt: number | undefined;
}

export class Pattern {
  readonly #unitBytes: number;
  readonly #piece: Uint8Array;
  readonly #stamps: Uint32Array;

  /** `content` has `pieceBytesMax` bytes and becomes the pattern's; units are whole parts of it. */
  constructor(content: Uint8Array<ArrayBuffer>, unitBytes: number) {
    this.#piece = content;
    this.#unitBytes = unitBytes;
    this.#stamps = new Uint32Array(content.buffer, content.byteOffset, content.length / 4);
  }

  /** The piece for this offset, a multiple of the unit. Valid until the next call. */
  at(offset: number, length: number): Uint8Array {
    const words = this.#unitBytes / 4;
    let unit = offset / this.#unitBytes;
    for (let word = 0; word * 4 < length; word += words) {
      this.#stamps[word] = unit;
      this.#stamps[word + 1] = unit / 2 ** 32;
      unit += 1;
    }
    return this.#piece.subarray(0, length);
  }

  /** How the bytes at this offset differ; undefined when they do not. */
  differenceAt(offset: number, read: Uint8Array): PatternDifference | undefined {
    const wanted = this.at(offset, read.length);
    if (Buffer.compare(wanted, read) === 0) return undefined;
    let units = 0;
    let first = -1;
    for (let at = 0; at < read.length; at += this.#unitBytes) {
      const end = Math.min(read.length, at + this.#unitBytes);
      if (Buffer.compare(wanted.subarray(at, end), read.subarray(at, end)) === 0) continue;
      units += 1;
      if (first === -1) first = at;
    }
    const byte = wanted.findIndex((each, index) => index >= first && each !== read[index]);
    const bits = (wanted[byte] ?? 0) ^ (read[byte] ?? 0);
    const belongsAt = this.#offsetIn(wanted, read, first);
    return { units, unitOffset: first, byteOffset: byte, bits, belongsAt };
  }

  /** The right place of a unit that is whole but for its stamp. */
  #offsetIn(wanted: Uint8Array, read: Uint8Array, first: number): number | undefined {
    const end = Math.min(read.length, first + this.#unitBytes);
    const rest = [wanted.subarray(first + 8, end), read.subarray(first + 8, end)] as const;
    if (Buffer.compare(...rest) !== 0) return undefined;
    const stamp = Buffer.from(read.subarray(first, first + 8));
    const words = new Uint32Array(new Uint8Array(stamp).buffer);
    return ((words[1] ?? 0) * 2 ** 32 + (words[0] ?? 0)) * this.#unitBytes;
  }
}

/** Bytes for a pattern that follow from a seed and are like chance. */
export function contentOf(seed: Uint8Array): Uint8Array<ArrayBuffer> {
  const key = createHash('sha256').update(seed).digest();
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  return new Uint8Array(cipher.update(Buffer.alloc(pieceBytesMax)));
}
