/** The last bytes that a console has shown. Bounded. Touches nothing but its own buffer. */
export class Scrollback {
  readonly #bytesMax: number;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #dropped = 0;
  #written = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#bytes;
  }

  /** The number of bytes that were ever written. */
  get written(): number {
    return this.#written;
  }

  /** Takes a copy; the oldest bytes make room. */
  write(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const last = this.#pieces.at(-1);
    this.#bytes += bytes.length;
    this.#written += bytes.length;
    // Output of serial ports arrives byte by byte: merged pieces keep their number small.
    if (last !== undefined && last.length + bytes.length <= pieceBytes) {
      this.#pieces[this.#pieces.length - 1] = Buffer.concat([last, bytes]);
    } else this.#pieces.push(Uint8Array.from(bytes));
    this.#makeRoom();
  }

  /** All of it, oldest first; it stays. */
  bytes(): Uint8Array {
    return Buffer.concat(this.#pieces);
  }

  /**
   * The oldest bytes, at most so many, which are forgotten with it, and how many before them had to
   * make room since the last time.
   */
  take(bytesMax: number): { readonly content: Uint8Array; readonly dropped: number } {
    const all = this.bytes();
    const content = all.subarray(0, bytesMax);
    const rest = all.subarray(content.length);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    const dropped = this.#dropped;
    this.#dropped = 0;
    return { content, dropped };
  }

  #makeRoom(): void {
    while (this.#bytes > this.#bytesMax) {
      const [first] = this.#pieces;
      if (first === undefined) return;
      const excess = Math.min(this.#bytes - this.#bytesMax, first.length);
      if (excess === first.length) this.#pieces.shift();
      else this.#pieces[0] = first.subarray(excess);
      this.#bytes -= excess;
      this.#dropped += excess;
    }
  }
}

const pieceBytes = 1024;
