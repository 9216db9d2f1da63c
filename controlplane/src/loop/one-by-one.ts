/** One queue per key, so that the work on one thing runs one after the other. */
import { whenSettled } from '@rackwright/platform';

export class OneByOne {
  readonly #queues = new Map<string, Promise<unknown>>();

  /** Runs `work` after all earlier work under this key. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const settled = whenSettled(result);
    this.#queues.set(key, settled);
    void settled.then(() => {
      if (this.#queues.get(key) === settled) this.#queues.delete(key);
    });
    return result;
  }
}
