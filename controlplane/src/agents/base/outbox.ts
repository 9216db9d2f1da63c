/** A bounded queue with one reader. When it is full, it ends instead of growing. */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #messagesMax: number;
  readonly #onEnd: () => void;
  readonly #waiting: T[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  /** `onEnd` is called once, when it accepts no more, even if messages still wait in it. */
  constructor(messagesMax: number, onEnd: () => void = () => undefined) {
    this.#messagesMax = messagesMax;
    this.#onEnd = onEnd;
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

  /** The reader still gets the waiting messages. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#wake?.();
    this.#onEnd();
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
