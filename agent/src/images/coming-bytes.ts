/**
 * How much of a blob may be read while it is being fetched.
 *
 * C1 The end of a blob is withheld until its digest was verified. So a reader that has all of it
 *    has verified content.
 * C2 A fetch that fails or begins anew ends its readers with an error: their bytes may belong to
 *    another blob.
 */
import { OciError } from '@rackwright/oci';

/** Bytes that are withheld until the digest was verified (C1). */
const withheldBytes = 4096;

/**
 * Resolves with the number of the blob's bytes, from its start on, that may be read by now: more
 * than `at`. Rejects when no more will come, or when `signal` is aborted.
 */
export type Readable = (at: number, signal: AbortSignal) => Promise<number>;

export class ComingBytes {
  readonly sizeBytes: number;
  #bytes = 0;
  /** Counts how often it was begun anew. */
  #life = 0;
  #state: 'coming' | 'proved' | 'failed' = 'coming';
  readonly #waiting = new Set<() => void>();

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes;
  }

  /** The number of bytes that are here. */
  get bytes(): number {
    return this.#bytes;
  }

  /** So much of it is here now. Less than before, or after a proof: it is begun anew (C1, C2). */
  have(bytes: number): void {
    if (bytes < this.#bytes || this.#state === 'proved') {
      this.#life += 1;
      this.#state = 'coming';
    }
    this.#bytes = bytes;
    this.#wake();
  }

  /** No more bytes will come. */
  end(state: 'proved' | 'failed'): void {
    if (this.#state === 'coming') this.#state = state;
    this.#wake();
  }

  /** For one reader that begins now. */
  reader(): Readable {
    const life = this.#life;
    return async (at, signal) => {
      for (;;) {
        if (signal.aborted) throw new OciError('cancelled', 'given up');
        if (this.#state === 'failed' || this.#life !== life) {
          throw new OciError('unreachable', 'the blob does not come to its end');
        }
        const readable = this.#readable;
        if (readable > at) return readable;
        await this.#change(signal);
      }
    };
  }

  /** C1 */
  get #readable(): number {
    if (this.#state === 'proved') return this.sizeBytes;
    return Math.min(this.#bytes, this.sizeBytes - withheldBytes);
  }

  /** Resolves when there is something new, or the signal is aborted. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        this.#waiting.delete(over);
        signal.removeEventListener('abort', over);
        resolve();
      };
      this.#waiting.add(over);
      signal.addEventListener('abort', over);
    });
  }

  #wake(): void {
    for (const over of [...this.#waiting]) over();
  }
}
