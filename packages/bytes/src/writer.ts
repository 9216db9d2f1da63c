/** Writing: the side that meets our own faults, so nothing is cut to fit. */
import { EncodeError } from './errors.ts';

const initialBytes = 64;

/**
 * Writes big-endian fields into a buffer that grows up to `bytesMax`.
 *
 * Invariants:
 * 1. A value outside its field's range, or a write beyond `bytesMax`, throws {@link EncodeError};
 *    nothing is ever truncated in silence.
 * 2. What `finish` returns belongs to the caller.
 */
export class ByteWriter {
  readonly #bytesMax: number;
  #buffer: Uint8Array;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#buffer = new Uint8Array(Math.min(initialBytes, bytesMax));
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  uint8(value: number): this {
    return this.#unsigned(value, 1);
  }

  uint16(value: number): this {
    return this.#unsigned(value, 2);
  }

  uint32(value: number): this {
    return this.#unsigned(value, 4);
  }

  bytes(value: Uint8Array): this {
    const at = this.#grow(value.length);
    this.#buffer.set(value, at);
    return this;
  }

  /** One byte per character; a character above U+00FF has no byte and is refused. */
  text(value: string): this {
    const at = this.#grow(value.length);
    for (let index = 0; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      if (code > 0xff) {
        throw new EncodeError(`character ${index} of ${JSON.stringify(value)} is not one byte`);
      }
      this.#buffer[at + index] = code;
    }
    return this;
  }

  /** Text and the zero byte that ends it; the text itself may hold none. */
  zeroTerminated(value: string): this {
    if (value.includes('\0')) {
      throw new EncodeError(`a zero byte inside ${JSON.stringify(value)}`);
    }
    return this.text(value).uint8(0);
  }

  zeros(count: number): this {
    this.#grow(count);
    return this;
  }

  finish(): Uint8Array {
    return this.#buffer.slice(0, this.#length);
  }

  #unsigned(value: number, width: 1 | 2 | 4): this {
    if (!Number.isInteger(value) || value < 0 || value >= 256 ** width) {
      throw new EncodeError(`${value} is no unsigned number of ${width} bytes`);
    }
    let rest = value;
    const at = this.#grow(width);
    for (let index = width - 1; index >= 0; index -= 1) {
      this.#buffer[at + index] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    return this;
  }

  /** Makes room for `count` more (zero) bytes and returns where they begin. */
  #grow(count: number): number {
    const at = this.#length;
    const length = at + count;
    if (!Number.isInteger(count) || count < 0 || length > this.#bytesMax) {
      throw new EncodeError(`${length} bytes do not fit into ${this.#bytesMax}`);
    }
    if (length > this.#buffer.length) {
      const grown = new Uint8Array(Math.min(this.#bytesMax, Math.max(length, at * 2)));
      grown.set(this.#buffer.subarray(0, at));
      this.#buffer = grown;
    }
    this.#length = length;
    return at;
  }
}
