/** One alarm per key at most, at a wall time: when a record says it must be looked at again. */
import type { Cancel, Clock } from '@rackwright/platform';

export class Alarms {
  readonly #clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly #set = new Map<string, Cancel>();
  #stopped = false;

  constructor(clock: Pick<Clock, 'nowMs' | 'after'>) {
    this.#clock = clock;
  }

  /** In place of the one before; at once when the time has passed. Undefined: there is no time. */
  set(key: string, atMs: number | undefined, ring: () => void): void {
    this.clear(key);
    if (atMs === undefined || this.#stopped) return;
    const cancel = this.#clock.after(Math.max(0, atMs - this.#clock.nowMs()), () => {
      this.#set.delete(key);
      ring();
    });
    this.#set.set(key, cancel);
  }

  clear(key: string): void {
    this.#set.get(key)?.();
    this.#set.delete(key);
  }

  /** Clears all; none is set any more. */
  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#set.values()) cancel();
    this.#set.clear();
  }
}
