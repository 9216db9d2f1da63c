/** Which objects nothing refers to any more. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Looks at most, and the pause between two. */
const looksMax = 50;
const lookMs = 5;

/** Counts the observed objects that the garbage collector has taken. */
export class References {
  readonly #collect: () => void;
  #taken = 0;
  readonly #observed = new FinalizationRegistry<undefined>(() => {
    this.#taken += 1;
  });

  constructor() {
    setFlagsFromString('--expose-gc');
    this.#collect = runInNewContext('gc') as () => void;
  }

  observe(object: object): void {
    this.#observed.register(object, undefined);
  }

  /** The number of taken objects, once there are so many or after the last look. */
  async taken(expected: number): Promise<number> {
    for (let look = 0; look < looksMax && this.#taken < expected; look += 1) {
      this.#collect();
      await new Promise((resolve) => {
        setTimeout(resolve, lookMs);
      });
    }
    return this.#taken;
  }
}
