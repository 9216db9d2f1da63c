/** Messages that came, for one reader: an async iterable that somebody else fills. */
export class Inbox<T> implements AsyncIterable<T> {
  readonly #waiting: T[] = [];
  #ended = false;
  #wake: () => void = () => {};

  push(message: T): void {
    if (this.#ended) return;
    this.#waiting.push(message);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
