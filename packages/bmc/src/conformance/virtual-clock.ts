import type { Cancel, Clock } from '@rackwright/platform';

/** Time for tests: it moves only on request, from one due callback to the next. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #due: Due[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  suspendAwareMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): Cancel {
    const entry = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((other) => other !== entry);
    };
  }

  /** Runs the next callback; false when none waits. */
  step(): boolean {
    const next = this.#due.reduce<Due | undefined>(
      (first, entry) => (first === undefined || entry.atMs < first.atMs ? entry : first),
      undefined,
    );
    if (next === undefined) return false;
    this.#due = this.#due.filter((other) => other !== next);
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.callback();
    return true;
  }

  /** Lets time pass until `promise` settles; fails when nothing is due and it has not. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    for (;;) {
      for (let turn = 0; turn < microtaskTurns && !settled; turn += 1) await Promise.resolve();
      if (settled) return await promise;
      if (!this.step()) throw new Error('nothing is due and the promise has not settled');
    }
  }
}

interface Due {
  readonly atMs: number;
  readonly callback: () => void;
}

/** More awaits than any chain of ours has between two timers. */
const microtaskTurns = 200;
