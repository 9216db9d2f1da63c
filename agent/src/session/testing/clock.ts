/** Time for tests: one heap of events, run one by one with all that follows from each. */
import type { Cancel, Clock } from '@rackwright/platform';

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly act: () => void;
}

/** Promise reactions that may follow from one event. */
const reactionsMax = 100;

export class TestClock {
  #nowMs = 0;
  #order = 0;
  #events: Event[] = [];
  /** What the wall clock is ahead of the time since the start. */
  wallAheadMs = 1_700_000_000_000;

  get nowMs(): number {
    return this.#nowMs;
  }

  at(delayMs: number, act: () => void): Cancel {
    const event = { atMs: this.#nowMs + delayMs, order: (this.#order += 1), act };
    this.#events.push(event);
    return () => {
      this.#events = this.#events.filter((other) => other !== event);
    };
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.at(delayMs, resolve);
    });
  }

  /** The machine sleeps: time passes, nothing happens meanwhile. */
  suspend(durationMs: number): void {
    this.#nowMs += durationMs;
  }

  /** Lets `durationMs` pass. */
  async run(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs;
    await settle();
    for (;;) {
      const next = this.#next(endMs);
      if (next === undefined) break;
      this.#events = this.#events.filter((event) => event !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.act();
      await settle();
    }
    this.#nowMs = Math.max(this.#nowMs, endMs);
  }

  /** The clock as one life of a program sees it: after `kill` nothing of it runs. */
  open(): { readonly clock: Clock; kill(): void } {
    let alive = true;
    const clock: Clock = {
      nowMs: () => this.wallAheadMs + this.#nowMs,
      suspendAwareMs: () => this.#nowMs,
      after: (delayMs, act) => this.at(delayMs, () => alive && act()),
    };
    return { clock, kill: () => (alive = false) };
  }

  #next(endMs: number): Event | undefined {
    let first: Event | undefined;
    for (const event of this.#events) {
      const earlier =
        first === undefined ||
        event.atMs < first.atMs ||
        (event.atMs === first.atMs && event.order < first.order);
      if (earlier && event.atMs <= endMs) first = event;
    }
    return first;
  }
}

async function settle(): Promise<void> {
  for (let reaction = 0; reaction < reactionsMax; reaction += 1) await Promise.resolve();
}
