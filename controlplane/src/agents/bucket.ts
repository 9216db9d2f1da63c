/** Token buckets: what may be taken at once, and how fast that comes back. */
import type { Clock } from '@rackwright/platform';

/** One of them. */
export class Bucket {
  readonly #perSecond: number;
  readonly #most: number;
  #left: number;
  #filledMs: number;

  constructor(perSecond: number, most: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#most = most;
    this.#left = most;
    this.#filledMs = nowMs;
  }

  /** Takes it in any case. Answers how long its taker has to wait before it goes on. */
  take(amount: number, nowMs: number): number {
    this.#fill(nowMs);
    this.#left -= amount;
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1_000) / this.#perSecond);
  }

  /** Takes it only when there is enough. */
  tryTake(amount: number, nowMs: number): boolean {
    this.#fill(nowMs);
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }

  /** How long until it is full again. */
  fullInMs(nowMs: number): number {
    this.#fill(nowMs);
    return Math.ceil(((this.#most - this.#left) * 1_000) / this.#perSecond);
  }

  /** A clock that goes back fills nothing, and begins anew from there. */
  #fill(nowMs: number): void {
    const filled = (Math.max(0, nowMs - this.#filledMs) * this.#perSecond) / 1_000;
    this.#left = Math.min(this.#most, this.#left + filled);
    this.#filledMs = nowMs;
  }
}

/** Full ones that are looked for at each taking: more than one taking can add. */
const sweptAtOnce = 2;

/** A bucket per rack, kept until it is full again: until then it says what the rack has taken. */
export class RackBuckets {
  readonly #perSecond: number;
  readonly #most: number;
  /** The one that was taken from last at the end. */
  readonly #byRack = new Map<string, Bucket>();

  constructor(perSecond: number, most: number) {
    this.#perSecond = perSecond;
    this.#most = most;
  }

  /** Racks that are remembered. */
  get size(): number {
    return this.#byRack.size;
  }

  /** The bucket of a rack, to take from at once. */
  of(rackId: string, nowMs: number): Bucket {
    this.#sweep(nowMs);
    const bucket = this.#byRack.get(rackId) ?? new Bucket(this.#perSecond, this.#most, nowMs);
    this.#byRack.delete(rackId);
    this.#byRack.set(rackId, bucket);
    return bucket;
  }

  /** Takes one, and waits until it was there to be taken. */
  async wait(rackId: string, clock: Pick<Clock, 'nowMs' | 'after'>): Promise<void> {
    const nowMs = clock.nowMs();
    const waitMs = this.of(rackId, nowMs).take(1, nowMs);
    if (waitMs > 0) await new Promise<void>((resolve) => clock.after(waitMs, resolve));
  }

  #sweep(nowMs: number): void {
    let left = sweptAtOnce;
    for (const [rackId, bucket] of this.#byRack) {
      if (left === 0 || bucket.fullInMs(nowMs) > 0) return;
      left -= 1;
      this.#byRack.delete(rackId);
    }
  }
}
