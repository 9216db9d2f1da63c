/**
 * Waits for many promises, one after another, each until a signal aborts: a stream lasts for
 * months. It adds one listener, and keeps no awaited result. (`Promise.race` with a promise that
 * does not settle keeps each of its results for as long as that one lasts.)
 */
export class Waits {
  readonly #signal: AbortSignal | undefined;
  /** Ends the wait under way. */
  #abort: (() => void) | undefined;
  #reject: ((error: Error) => void) | undefined;
  #failure: Error | undefined;
  readonly #onAbort = () => this.#abort?.();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /**
   * Resolves with the value, or undefined as soon as the signal aborts; the earlier wait has ended.
   * Rejects as `promise` does, and when `fail` is called.
   */
  on<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#abort = () => resolve(undefined);
      this.#reject = reject;
      if (this.#failure !== undefined) reject(this.#failure);
      if (this.#signal?.aborted === true) resolve(undefined);
      promise.then(resolve, reject);
    });
  }

  /** Rejects the present wait and every later one with `error`. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#reject?.(error);
  }

  /** Nobody waits any more. */
  over(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
