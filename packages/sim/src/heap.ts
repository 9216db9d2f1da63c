/**
 * The one event heap of a simulation. Everything that happens, happens as an event on it, ordered
 * by time and, at the same time, by when it was scheduled; so a run is a function of its seed.
 *
 * Invariants:
 * 1. Time only moves when an event is taken, and never backwards.
 * 2. Promises settle between two events, before the next one is taken.
 */
import type { Cancel } from '@rackwright/platform';

interface ScheduledEvent {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

export class EventHeap {
  readonly #events: ScheduledEvent[] = [];
  #nowMs = 0;
  #order = 0;
  #taken = 0;

  /** Simulated milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events taken so far. */
  get taken(): number {
    return this.#taken;
  }

  after(delayMs: number, run: () => void): Cancel {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const event: ScheduledEvent = { atMs, order: this.#order++, run, cancelled: false };
    this.#push(event);
    return () => {
      event.cancelled = true;
    };
  }

  /** Takes events until none is left before `untilMs` or `stop` returns true after one of them. */
  async run(untilMs: number, stop: () => boolean): Promise<void> {
    await settle();
    for (let event = this.#pop(); event !== undefined; event = this.#pop()) {
      if (event.atMs > untilMs) {
        this.#push(event);
        this.#nowMs = untilMs;
        return;
      }
      if (event.cancelled) continue;
      this.#nowMs = event.atMs;
      this.#taken += 1;
      event.run();
      await settle();
      if (stop()) return;
    }
  }

  #push(event: ScheduledEvent): void {
    const heap = this.#events;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent] as ScheduledEvent)) break;
      heap[at] = heap[parent] as ScheduledEvent;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): ScheduledEvent | undefined {
    const heap = this.#events;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const rightIsLess =
        right < heap.length &&
        isBefore(heap[right] as ScheduledEvent, heap[left] as ScheduledEvent);
      const child = rightIsLess ? right : left;
      if (!isBefore(heap[child] as ScheduledEvent, last)) break;
      heap[at] = heap[child] as ScheduledEvent;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Lets every promise that can settle do so: they all run before the next macrotask. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
