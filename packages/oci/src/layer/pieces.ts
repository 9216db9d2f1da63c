/** Takes exact counts of bytes from a stream of pieces of any size. */
import { OciError } from '../failure.ts';

const nothing = new Uint8Array();

export class Pieces {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = nothing;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** At least one byte and at most `bytesMax`; undefined at the end. */
  async some(bytesMax: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return undefined;
      this.#rest = next.value;
    }
    const taken = this.#rest.subarray(0, bytesMax);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  /** Exactly so many; undefined when the stream ends before the first of them. */
  async exactly(bytes: number): Promise<Uint8Array | undefined> {
    const whole = new Uint8Array(bytes);
    let at = 0;
    while (at < bytes) {
      const piece = await this.some(bytes - at);
      if (piece === undefined && at === 0) return undefined;
      if (piece === undefined) throw endsWithin();
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  async skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) {
      const piece = await this.some(left);
      if (piece === undefined) throw endsWithin();
      left -= piece.length;
    }
  }

  /** Reads the rest, so that counting and hashing cover all of it. */
  async drain(): Promise<void> {
    while ((await this.some(Number.MAX_SAFE_INTEGER)) !== undefined);
  }

  /** Lets go of the source. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}

/** The stream ends where more bytes are required. */
export function endsWithin(): OciError {
  return new OciError('malformed', 'the archive ends within an entry');
}
