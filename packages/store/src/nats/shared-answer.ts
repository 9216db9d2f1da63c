/**
 * One question that many callers have at the same time. A caller gets the answer to a question that
 * was asked after its call; while one is under way, all later callers wait for the next together.
 * So there are at most as many questions as fit behind one another.
 */
export class SharedAnswer<T> {
  readonly #ask: () => Promise<T>;
  #current: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  /** Rejects as the question does. */
  get(): Promise<T> {
    this.#next ??= this.#askAfter(this.#current);
    return this.#next;
  }

  async #askAfter(current: Promise<T> | undefined): Promise<T> {
    // Its failure is for its own callers.
    await Promise.allSettled([current]);
    this.#current = this.#next;
    this.#next = undefined;
    return this.#ask();
  }
}
