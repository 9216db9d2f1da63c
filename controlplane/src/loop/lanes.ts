/**
 * A queue with two lanes: `soon`, and `later` for a pass over everything. Pure.
 *
 * Invariants:
 * 1. Each id waits once, in one lane. An id that becomes `soon` leaves the other lane.
 * 2. Each lane is first in, first out. While both have entries, one of `givenPerLater` comes from
 *    `later`, so that it is never starved.
 *
 * Bounded by the number of ids.
 */

export type Lane = 'soon' | 'later';

/** While `later` has entries, one of this many comes from it. */
const givenPerLater = 8;

interface QueuedItem<T> {
  readonly item: T;
  readonly lane: Lane;
}

export class Lanes<T> {
  readonly #lanes = { soon: new Line(), later: new Line() };
  readonly #waiting = new Map<string, QueuedItem<T>>();
  #given = 0;

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  add(id: string, item: T, lane: Lane): void {
    const known = this.#waiting.get(id);
    if (known !== undefined && (known.lane === lane || known.lane === 'soon')) return;
    this.#waiting.set(id, { item, lane });
    this.#lanes[lane].push(id);
  }

  /** Removes and returns the next one; undefined: none waits. */
  take(): T | undefined {
    this.#given += 1;
    const first: Lane = this.#given % givenPerLater === 0 ? 'later' : 'soon';
    return this.#takeOf(first) ?? this.#takeOf(first === 'soon' ? 'later' : 'soon');
  }

  clear(): void {
    this.#waiting.clear();
  }

  #takeOf(lane: Lane): T | undefined {
    for (let id = this.#lanes[lane].take(); id !== undefined; id = this.#lanes[lane].take()) {
      const waiting = this.#waiting.get(id);
      // It may have changed lanes.
      if (waiting?.lane !== lane) continue;
      this.#waiting.delete(id);
      return waiting.item;
    }
    return undefined;
  }
}

/** First in, first out. A map would iterate over removed entries to find the first one. */
class Line {
  #ids: string[] = [];
  #at = 0;

  push(id: string): void {
    this.#ids.push(id);
  }

  take(): string | undefined {
    const id = this.#ids[this.#at];
    this.#at += 1;
    if (id === undefined || this.#at * 2 > this.#ids.length) {
      this.#ids = this.#ids.slice(this.#at);
      this.#at = 0;
    }
    return id;
  }
}
