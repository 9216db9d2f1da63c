/** At most one alarm per key, at a wall time: for records that name the time of their next pass. */
import type { Cancel, Clock } from '@rackwright/platform';

export class Alarms {
  readonly #clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly #set = new Map<string, Cancel>();
  #stopped = false;

  constructor(clock: Pick<Clock, 'nowMs' | 'after'>) {
    this.#clock = clock;
  }

  /** Replaces the earlier one; rings at once when the time has passed. Undefined: no alarm. */
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
