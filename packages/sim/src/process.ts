/**
 * A simulated process: once killed, nothing of it runs any more. Its timers are dropped, its calls
 * of the platform are never answered, and its messages go nowhere.
 *
 * Invariants:
 * 1. While it is suspended nothing of it runs; pending callbacks run right after, in order.
 * 2. Its wall clock may step; `suspendAwareMs` only grows and counts suspended time.
 */
import type { Clock, CrashPoint } from '@rackwright/platform';
import type { EventHeap } from './heap.ts';

export class SimProcess {
  readonly name: string;
  readonly #heap: EventHeap;
  readonly #wallNowMs: () => number;
  readonly #onCrash: (point: string) => boolean;
  #alive = true;
  #suspendedUntilMs = 0;
  readonly #endings: (() => void)[] = [];

  /**
   * `wall` is the wall time at the start of the simulation, or a clock that may step.
   * `shouldCrash` decides at each crash point whether the process dies there.
   */
  constructor(
    name: string,
    heap: EventHeap,
    wall: number | (() => number),
    shouldCrash: (point: string) => boolean,
  ) {
    this.name = name;
    this.#heap = heap;
    this.#wallNowMs = typeof wall === 'number' ? () => wall + heap.nowMs : wall;
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

  /** Stops it from running for a while, as a stopped virtual machine does. */
  suspend(durationMs: number): void {
    this.#suspendedUntilMs = Math.max(this.#suspendedUntilMs, this.#heap.nowMs + durationMs);
  }

  /** Calls `ending` when the process is killed. */
  whenKilled(ending: () => void): void {
    this.#endings.push(ending);
  }

  /** Runs `work` in the process: now, when it wakes again, or never. */
  enter(work: () => void): void {
    if (!this.#alive) return;
    const waitMs = this.#suspendedUntilMs - this.#heap.nowMs;
    if (waitMs <= 0) work();
    else this.#heap.after(waitMs, () => this.enter(work));
  }

  readonly crashPoint: CrashPoint = (name) => {
    if (this.#alive && this.#onCrash(name)) this.kill();
  };

  readonly clock: Clock = {
    nowMs: () => Math.floor(this.#wallNowMs()),
    suspendAwareMs: () => this.#heap.nowMs,
    after: (delayMs, callback) => {
      let cancelled = false;
      const run = () => {
        if (!cancelled) callback();
      };
      const cancel = this.#heap.after(delayMs, () => this.enter(run));
      return () => {
        cancelled = true;
        cancel();
      };
    },
  };

  /** The value after `delayMs`, if the process still lives then; else never. */
  answer<T>(delayMs: number, make: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#heap.after(delayMs, () =>
        this.enter(() => {
          Promise.resolve()
            .then(make)
            .then(
              (value) => this.enter(() => resolve(value)),
              (error: unknown) => this.enter(() => reject(error)),
            );
        }),
      );
    });
  }
}
