/**
 * How values are written shorter: as parts of what stands before them, in a dictionary or in the
 * value itself. Records of one kind have most of their bytes in common, and bytes are what a commit
 * and a checkpoint write.
 *
 * A packed value is its length, then pairs of a run of literal bytes and a part to be repeated. All
 * numbers are in base 128, the lowest digits first, as in protobuf. A part is at least `PART_MIN`
 * long, and is told by how far before the present place it begins; it may reach into itself.
 *
 * Invariants:
 * 1. A packed value needs nothing but its dictionary: no other value can take it along.
 * 2. Work and memory are bounded by the value and the dictionary, for damaged bytes as well.
 */
import { VALUE_BYTES_MAX } from '../contract.ts';

/** Longest dictionary, in bytes. */
export const DICTIONARY_BYTES_MAX = 64 * 1_024;
/** Shorter values are not packed: there is nothing to be won. */
const VALUE_BYTES_MIN = 64;
const PART_MIN = 4;
const HASH_BITS = 12;
/** Places without a part after which every second one is looked at, and so on: sealed values. */
const MISSES_UNTIL_FASTER = 64;

export class Packer {
  readonly #dictionary: Uint8Array;
  /** By the hash of four bytes, where the dictionary has them last; -1: nowhere. */
  readonly #places: Int32Array;
  /** As `#places`, of what is being packed. */
  readonly #seen: Int32Array;
  /** The dictionary, and what is being packed behind it. */
  #work: Uint8Array;

  /** Throws `RangeError` for a dictionary that is too long. */
  constructor(dictionary: Uint8Array) {
    if (dictionary.length > DICTIONARY_BYTES_MAX) {
      throw new RangeError(`a dictionary has at most ${DICTIONARY_BYTES_MAX} bytes`);
    }
    this.#dictionary = dictionary;
    this.#places = new Int32Array(2 ** HASH_BITS).fill(-1);
    this.#seen = new Int32Array(2 ** HASH_BITS);
    this.#work = Uint8Array.from(dictionary);
    for (let at = 0; at + PART_MIN <= dictionary.length; at += 1) {
      this.#places[hashAt(dictionary, at)] = at;
    }
  }

  /** The value packed; undefined where that is not shorter. */
  pack(value: Uint8Array): Uint8Array | undefined {
    if (value.length < VALUE_BYTES_MIN) return undefined;
    const work = this.#place(value);
    const seen = this.#seen;
    seen.set(this.#places);
    const end = this.#dictionary.length + value.length;
    const out = new Output(value.length - 1);
    out.number(value.length);
    let literals = this.#dictionary.length;
    let misses = 0;
    for (let at = literals; at + PART_MIN <= end && !out.isFull; ) {
      const hash = hashAt(work, at);
      const from = seen[hash] ?? -1;
      seen[hash] = at;
      const length = from < 0 ? 0 : lengthInBoth(work, from, at, end);
      if (length < PART_MIN) {
        misses += 1;
        at += 1 + Math.floor(misses / MISSES_UNTIL_FASTER);
        continue;
      }
      misses = 0;
      out.bytes(work, literals, at);
      out.number(length - PART_MIN);
      out.number(at - from);
      for (let inside = at + 1; inside < at + length && inside + PART_MIN <= end; inside += 2) {
        seen[hashAt(work, inside)] = inside;
      }
      at += length;
      literals = at;
    }
    if (literals < end) out.bytes(work, literals, end);
    return out.taken();
  }

  /** Puts the value behind the dictionary. */
  #place(value: Uint8Array): Uint8Array {
    const work = this.#room(this.#dictionary.length + value.length);
    work.set(value, this.#dictionary.length);
    return work;
  }

  /** The value that was packed with this dictionary. Throws for bytes that are no packed value. */
  unpack(packed: Uint8Array): Uint8Array {
    const input = new Input(packed);
    const length = input.number();
    if (length > VALUE_BYTES_MAX) throw damaged();
    const start = this.#dictionary.length;
    const work = this.#room(start + length);
    const end = start + length;
    let at = start;
    while (at < end) {
      const literals = input.number();
      if (literals > end - at) throw damaged();
      input.copyTo(work, at, literals);
      at += literals;
      if (at === end) break;
      const part = input.number() + PART_MIN;
      const back = input.number();
      if (part > end - at || back === 0 || back > at) throw damaged();
      // By bytes: most parts are short, and one may reach into itself.
      for (const until = at + part; at < until; at += 1) work[at] = work[at - back] ?? 0;
    }
    if (!input.isAtEnd) throw damaged();
    return work.slice(start, end);
  }

  #room(needed: number): Uint8Array {
    if (this.#work.length < needed) {
      this.#work = new Uint8Array(2 * needed);
      this.#work.set(this.#dictionary);
    }
    return this.#work;
  }
}

function hashAt(bytes: Uint8Array, at: number): number {
  const word =
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24);
  return Math.imul(word, 2_654_435_761) >>> (32 - HASH_BITS);
}

/** How many bytes from two places on are the same, before the end. */
function lengthInBoth(bytes: Uint8Array, from: number, at: number, end: number): number {
  let length = 0;
  while (at + length < end && bytes[from + length] === bytes[at + length]) length += 1;
  return length;
}

/** What is packed so far; takes no more than would be worth it. */
class Output {
  readonly #bytes: Uint8Array;
  #length = 0;
  isFull = false;

  constructor(bytesMax: number) {
    this.#bytes = new Uint8Array(bytesMax);
  }

  number(value: number): void {
    for (let rest = value; ; rest >>>= 7) {
      if (this.#length === this.#bytes.length) {
        this.isFull = true;
        return;
      }
      this.#bytes[this.#length] = rest > 127 ? (rest & 127) | 128 : rest;
      this.#length += 1;
      if (rest <= 127) return;
    }
  }

  /** A run of bytes, its length first. */
  bytes(from: Uint8Array, start: number, end: number): void {
    this.number(end - start);
    if (this.isFull || end - start > this.#bytes.length - this.#length) {
      this.isFull = true;
      return;
    }
    for (let at = start; at < end; at += 1) this.#bytes[this.#length++] = from[at] ?? 0;
  }

  taken(): Uint8Array | undefined {
    return this.isFull ? undefined : this.#bytes.subarray(0, this.#length);
  }
}

class Input {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  number(): number {
    for (let value = 0, shift = 0; shift <= 21; shift += 7) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw damaged();
      this.#at += 1;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw damaged();
  }

  copyTo(target: Uint8Array, start: number, length: number): void {
    if (length > this.#bytes.length - this.#at) throw damaged();
    for (let at = start; at < start + length; at += 1) target[at] = this.#bytes[this.#at++] ?? 0;
  }
}

function damaged(): Error {
  return new Error('a packed value is damaged');
}
