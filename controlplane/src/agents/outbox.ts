/**
 * A bounded queue that one reader drains as it can; beyond its bound it ends instead of growing.
 */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #messagesMax: number;
  readonly #waiting: T[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(messagesMax: number) {
    this.#messagesMax = messagesMax;
  }

  /** Dropped once the queue has ended. */
  push(message: T): void {
    if (this.#ended) return;
    if (this.#waiting.length >= this.#messagesMax) {
      this.end();
      return;
    }
    this.#waiting.push(message);
    this.#wake?.();
  }

  /** The reader still gets what is waiting. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      while (this.#waiting.length > 0) yield this.#waiting.shift() as T;
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }
}
