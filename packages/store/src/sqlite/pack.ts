/**
 * Compression of values: deflated (RFC 1951) with a dictionary of their frequent content. Records
 * of one kind have most of their bytes in common, and a commit and a checkpoint cost by bytes.
 *
 * Invariants:
 * 1. A packed value needs nothing but its dictionary: the loss of another value does not affect it.
 * 2. Work and memory are bounded by the longest value, for damaged bytes as well.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { VALUE_BYTES_MAX } from '../contract.ts';

/** Longest dictionary, in bytes: the window of deflate. */
export const DICTIONARY_BYTES_MAX = 32 * 1_024;
/** Shorter values are not packed: there is nothing to be won. */
const VALUE_BYTES_MIN = 64;
/** Little memory, for values are small, and much of the time is spent making room. */
const MEMORY_LEVEL = 2;

export class Packer {
  readonly #dictionary: Uint8Array;

  /** Throws `RangeError` for a dictionary that is too long. */
  constructor(dictionary: Uint8Array) {
    if (dictionary.length > DICTIONARY_BYTES_MAX) {
      throw new RangeError(`a dictionary has at most ${DICTIONARY_BYTES_MAX} bytes`);
    }
    this.#dictionary = dictionary;
  }

  /** The value packed; undefined where that is not shorter. */
  pack(value: Uint8Array): Uint8Array | undefined {
    if (value.length < VALUE_BYTES_MIN) return undefined;
    const dictionary = this.#dictionary;
    // Room for a shorter result, as only that is used; allocating the usual 16 KiB takes time.
    const options = { dictionary, memLevel: MEMORY_LEVEL, chunkSize: value.length };
    const packed = deflateRawSync(value, options);
    return packed.length < value.length ? packed : undefined;
  }

  /** The value that was packed with this dictionary. Throws for bytes that are no packed value. */
  unpack(packed: Uint8Array): Uint8Array {
    const options = { dictionary: this.#dictionary, maxOutputLength: VALUE_BYTES_MAX };
    try {
      // Copied: zlib's result keeps the whole of its output buffer.
      return new Uint8Array(inflateRawSync(packed, options));
    } catch (cause) {
      throw new Error('a packed value is damaged', { cause });
    }
  }
}
