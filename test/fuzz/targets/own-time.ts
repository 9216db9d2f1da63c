/** A clock for what waits: time passes at once, but only when nothing else can go on. */
import { VirtualClock } from '../../../packages/bmc/src/conformance/virtual-clock.ts';

export class OwnTime extends VirtualClock {
  /** Lets time pass until the promise settles; throws when nothing is due and it has not. */
  override async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    for (;;) {
      // All that can go on without the clock has gone on by then.
      await new Promise((resolve) => setImmediate(resolve));
      if (settled) return await promise;
      if (!this.step()) throw new Error('nothing is due and the promise has not settled');
    }
  }
}
