/**
 * A simulated process: once killed, nothing of it runs any more. Its timers are dropped, what it
 * asked the platform for is never answered, and what it still says goes nowhere.
 */
import type { Clock, CrashPoint } from '@rackwright/platform';
import type { EventHeap } from './heap.ts';

export class SimProcess {
  readonly name: string;
  readonly #heap: EventHeap;
  readonly #wallStartMs: number;
  readonly #onCrash: (point: string) => boolean;
  #alive = true;
  readonly #endings: (() => void)[] = [];

  /** `shouldCrash` decides at each crash point whether the process dies there. */
  constructor(
    name: string,
    heap: EventHeap,
    wallStartMs: number,
    shouldCrash: (point: string) => boolean,
  ) {
    this.name = name;
    this.#heap = heap;
    this.#wallStartMs = wallStartMs;
    this.#onCrash = shouldCrash;
  }

  get alive(): boolean {
    return this.#alive;
  }

  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const ending of this.#endings) ending();
  }

  /** Calls `ending` when the process is killed. */
  whenKilled(ending: () => void): void {
    this.#endings.push(ending);
  }

  readonly crashPoint: CrashPoint = (name) => {
    if (this.#alive && this.#onCrash(name)) this.kill();
  };

  readonly clock: Clock = {
    nowMs: () => this.#wallStartMs + this.#heap.nowMs,
    suspendAwareMs: () => this.#heap.nowMs,
    after: (delayMs, callback) =>
      this.#heap.after(delayMs, () => {
        if (this.#alive) callback();
      }),
  };

  /** The value after `delayMs`, if the process still lives then; else never. */
  answer<T>(delayMs: number, make: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#heap.after(delayMs, () => {
        if (!this.#alive) return;
        Promise.resolve()
          .then(make)
          .then(
            (value) => this.#alive && resolve(value),
            (error: unknown) => this.#alive && reject(error),
          );
      });
    });
  }
}
