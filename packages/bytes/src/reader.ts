/** Reading: the side that gets bytes of others, so every access is checked. */
import { DecodeError } from './errors.ts';

const latin1 = new TextDecoder('latin1');

/**
 * Reads big-endian fields from bytes of an untrusted sender.
 *
 * Invariants:
 * 1. Every access is checked; reading past the end throws {@link DecodeError} and nothing else.
 * 2. The offset moves only when a read succeeds.
 * 3. Byte strings are views of the input, not copies: keep one only while the input is not reused.
 */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #subject: string;
  #offset = 0;

  /** `subject` names the thing being read ("DHCP packet") and begins every error message. */
  constructor(bytes: Uint8Array, subject: string) {
    this.#bytes = bytes;
    this.#subject = subject;
  }

  /** Bytes already read. */
  get offset(): number {
    return this.#offset;
  }

  /** Bytes not yet read. */
  get remaining(): number {
    return this.#bytes.length - this.#offset;
  }

  uint8(): number {
    return this.#take(1)[0] as number;
  }

  uint16(): number {
    const field = this.#take(2);
    return ((field[0] as number) << 8) | (field[1] as number);
  }

  uint32(): number {
    const high = this.#peekable(4).#unchecked16();
    return high * 0x1_0000 + this.#unchecked16();
  }

  /** The next `count` bytes, as a view of the input. */
  bytes(count: number): Uint8Array {
    return this.#take(count);
  }

  /** Everything that is left, as a view of the input. */
  rest(): Uint8Array {
    return this.#take(this.remaining);
  }

  /** Whether nothing is left but zero bytes; true at the end. */
  restIsZero(): boolean {
    for (let at = this.#offset; at < this.#bytes.length; at += 1) {
      if (this.#bytes[at] !== 0) return false;
    }
    return true;
  }

  /** The bytes before the next zero byte, one character each; the zero is consumed too. */
  zeroTerminated(): string {
    const end = this.#bytes.indexOf(0, this.#offset);
    if (end < 0) {
      throw this.error('text without the zero byte that ends it');
    }
    const text = latin1.decode(this.#take(end - this.#offset));
    this.#offset += 1;
    return text;
  }

  /** Throws unless everything has been read. */
  expectEnd(): void {
    if (this.remaining > 0) {
      throw this.error(`${this.remaining} bytes left over`);
    }
  }

  /** An error that says what is being read and where. */
  error(problem: string): DecodeError {
    return new DecodeError(`${this.#subject}: ${problem} at byte ${this.#offset}`);
  }

  #peekable(count: number): this {
    if (!Number.isInteger(count) || count < 0 || count > this.remaining) {
      throw this.error(`${count} bytes needed, ${this.remaining} there`);
    }
    return this;
  }

  #take(count: number): Uint8Array {
    this.#peekable(count);
    const start = this.#offset;
    this.#offset += count;
    return this.#bytes.subarray(start, this.#offset);
  }

  #unchecked16(): number {
    const high = this.#bytes[this.#offset] as number;
    const low = this.#bytes[this.#offset + 1] as number;
    this.#offset += 2;
    return (high << 8) | low;
  }
}
