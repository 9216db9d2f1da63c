/**
 * Looks at many things that can wait: so many at once, what is urgent first, and each key once
 * however often it is added. Others have their turn in between.
 */
import { type Clock, pause } from '@rackwright/platform';

/** Looks under way at once. */
const looksAtOnceMax = 32;
/** Looks of one worker between two turns of others. */
const looksBetweenPauses = 8;

export class Looks {
  readonly #clock: Pick<Clock, 'after'>;
  /** Never rejects. */
  readonly #look: (key: string) => Promise<void>;
  readonly #signal: AbortSignal;
  readonly #urgent = new Line();
  readonly #other = new Line();
  /** Keys that wait, and in which line; one that has changed lines is passed over in the other. */
  readonly #lineOf = new Map<string, Line>();
  #working = 0;

  constructor(
    clock: Pick<Clock, 'after'>,
    look: (key: string) => Promise<void>,
    signal: AbortSignal,
  ) {
    this.#clock = clock;
    this.#look = look;
    this.#signal = signal;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#lineOf.size;
  }

  /** Looks at each later, in this order, the urgent ones before all others. */
  add(keys: Iterable<string>, isUrgent: (key: string) => boolean): void {
    for (const key of keys) {
      const line = isUrgent(key) ? this.#urgent : this.#other;
      const known = this.#lineOf.get(key);
      if (known === line || known === this.#urgent) continue;
      this.#lineOf.set(key, line);
      line.push(key);
    }
    const free = Math.min(looksAtOnceMax - this.#working, this.waiting);
    for (let each = 0; each < free; each += 1) void this.#work();
  }

  async #work(): Promise<void> {
    this.#working += 1;
    for (let looked = 1; !this.#signal.aborted; looked += 1) {
      const key = this.#next();
      if (key === undefined) break;
      await this.#look(key);
      if (looked % looksBetweenPauses === 0) await pause(this.#clock, 0, this.#signal);
    }
    this.#working -= 1;
  }

  #next(): string | undefined {
    for (const line of [this.#urgent, this.#other]) {
      for (let key = line.take(); key !== undefined; key = line.take()) {
        if (this.#lineOf.get(key) !== line) continue;
        this.#lineOf.delete(key);
        return key;
      }
    }
    return undefined;
  }
}

/** First in, first out. */
class Line {
  #keys: string[] = [];
  #at = 0;

  push(key: string): void {
    this.#keys.push(key);
  }

  take(): string | undefined {
    const key = this.#keys[this.#at];
    this.#at += 1;
    if (key === undefined) {
      this.#keys = [];
      this.#at = 0;
    }
    return key;
  }
}
