/**
 * Messages on their way out of a stream: written from callbacks, read by one `for await`. Bounded:
 * a reader that does not keep up is cut off instead of filling memory.
 */
export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #messagesMax: number;
  readonly #waiting: T[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(messagesMax: number) {
    this.#messagesMax = messagesMax;
  }

  /** False when the queue has ended, or ends now because it is full. */
  push(message: T): boolean {
    if (this.#waiting.length >= this.#messagesMax) this.end();
    if (this.#ended) return false;
    this.#waiting.push(message);
    this.#wake?.();
    return true;
  }

  /** Earlier messages are still read; idempotent. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        yield next;
        continue;
      }
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }
}
