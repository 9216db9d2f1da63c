/**
 * Reports a program's output while it runs: a bounded amount in each interval; beyond that the
 * middle is left out. It waits for no receiver: output that cannot be sent now is kept, within the
 * same bound, until it can.
 */
import type { Cancel, Clock } from '@rackwright/platform';
import { OutputTail } from './output-tail.ts';

/** Between two pieces, milliseconds. */
export const liveIntervalMs = 250;
/** Bytes of one interval that are sent: as many of its beginning, and as many of its end. */
export const liveHalfBytesMax = 16 * 1024;

/** Takes a piece and its offset in the whole output; false when it cannot be sent now. */
export type OnPiece = (offset: bigint, content: Uint8Array) => boolean;

export class LiveOutput {
  readonly #clock: Clock;
  readonly #tell: OnPiece;
  #timer: Cancel | undefined;
  /** The number of bytes before the pending ones. */
  #offset = 0;
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #rest = new OutputTail(liveHalfBytesMax);

  constructor(clock: Clock, tell: OnPiece) {
    this.#clock = clock;
    this.#tell = tell;
  }

  push(piece: Uint8Array): void {
    const room = this.#rest.totalBytes > 0 ? 0 : liveHalfBytesMax - this.#headBytes;
    const first = piece.slice(0, room);
    if (first.length > 0) this.#head.push(first);
    this.#headBytes += first.length;
    if (piece.length > room) this.#rest.push(piece.subarray(room));
    this.#timer ??= this.#clock.after(liveIntervalMs, () => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  /** Sends the rest, if it can be sent. */
  end(): void {
    this.#timer?.();
    this.#flush();
    this.#timer?.();
  }

  #flush(): void {
    if (this.#headBytes === 0) return;
    const head = new Uint8Array(Buffer.concat(this.#head));
    if (!this.#tell(BigInt(this.#offset), head)) {
      this.#timer = this.#clock.after(liveIntervalMs, () => {
        this.#timer = undefined;
        this.#flush();
      });
      return;
    }
    const rest = this.#rest;
    this.#offset += this.#headBytes + rest.totalBytes;
    this.#head = [];
    this.#headBytes = 0;
    this.#rest = new OutputTail(liveHalfBytesMax);
    if (rest.totalBytes === 0) return;
    const tail = rest.tail();
    // When that cannot be sent any more, it is one more gap.
    this.#tell(BigInt(this.#offset - tail.length), tail);
  }
}
