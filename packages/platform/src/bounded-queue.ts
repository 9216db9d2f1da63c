/** The maximum number of entries at work, and of those that wait. */
export interface QueueLimits {
  readonly atOnceMax: number;
  readonly waitingMax: number;
}

/**
 * Works on items in the order of their arrival: a bounded number at once, with a bounded number
 * that waits.
 */
export class BoundedQueue<T> {
  readonly #limits: QueueLimits;
  readonly #work: (item: T) => Promise<void>;
  readonly #onIdle: () => void;
  readonly #waiting: T[] = [];
  #atWork = 0;

  /** `work` must not reject. `onIdle`: nothing waits and nothing is worked on. */
  constructor(limits: QueueLimits, work: (item: T) => Promise<void>, onIdle = () => {}) {
    this.#limits = limits;
    this.#work = work;
    this.#onIdle = onIdle;
  }

  /** The waiting entries, and those at work. */
  get size(): number {
    return this.#waiting.length + this.#atWork;
  }

  /** False when too many wait: it was not taken. `isFirst`: it precedes all that wait. */
  add(item: T, { isFirst = false } = {}): boolean {
    if (this.#waiting.length >= this.#limits.waitingMax) return false;
    if (isFirst) this.#waiting.unshift(item);
    else this.#waiting.push(item);
    this.#start();
    return true;
  }

  /** Removes the waiting items. */
  clear(): T[] {
    return this.#waiting.splice(0);
  }

  #start(): void {
    while (this.#atWork < this.#limits.atOnceMax) {
      const item = this.#waiting.shift();
      if (item === undefined) break;
      this.#atWork += 1;
      void this.#work(item).finally(() => {
        this.#atWork -= 1;
        this.#start();
      });
    }
    if (this.size === 0) this.#onIdle();
  }
}
