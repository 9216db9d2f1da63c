/** Token buckets: how much may be taken at once, and how fast that comes back. */
import type { Clock } from './clock.ts';

/** How fast a bucket fills, and its size when full. */
export interface BucketRate {
  readonly perSecond: number;
  readonly most: number;
}

/** One of them. */
export class Bucket {
  readonly #perSecond: number;
  readonly #most: number;
  #left: number;
  #filledMs: number;

  constructor({ perSecond, most }: BucketRate, nowMs: number) {
    this.#perSecond = perSecond;
    this.#most = most;
    this.#left = most;
    this.#filledMs = nowMs;
  }

  /** Takes it in any case. Answers how long its taker has to wait before it goes on. */
  take(amount: number, nowMs: number): number {
    this.#fill(nowMs);
    this.#left -= amount;
    return this.#waitMs(0);
  }

  /** Takes it only when there is enough: 0. Else: in so many milliseconds there is. */
  tryTake(amount: number, nowMs: number): number {
    this.#fill(nowMs);
    const waitMs = this.#waitMs(amount);
    if (waitMs === 0) this.#left -= amount;
    return waitMs;
  }

  /** The time until it is full again. */
  fullInMs(nowMs: number): number {
    this.#fill(nowMs);
    return this.#waitMs(this.#most);
  }

  #waitMs(amount: number): number {
    return this.#left >= amount ? 0 : Math.ceil(((amount - this.#left) * 1_000) / this.#perSecond);
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

/**
 * A bucket for each client, kept until it is full again: until then it records how much was taken.
 * No more than `keysMax` are kept; beyond that all new clients share one.
 */
export class Buckets {
  readonly #rate: BucketRate;
  readonly #keysMax: number;
  /** In the order of use: the key that was used last is at the end. */
  readonly #byKey = new Map<string, Bucket>();

  constructor(rate: BucketRate, keysMax: number) {
    this.#rate = rate;
    this.#keysMax = keysMax;
  }

  /** Those that are remembered. */
  get size(): number {
    return this.#byKey.size;
  }

  /** The bucket of a key, to take from at once. */
  of(key: string, nowMs: number): Bucket {
    this.#sweep(nowMs);
    const isFull = this.#byKey.size >= this.#keysMax && !this.#byKey.has(key);
    const name = isFull ? '' : key;
    const bucket = this.#byKey.get(name) ?? new Bucket(this.#rate, nowMs);
    this.#byKey.delete(name);
    this.#byKey.set(name, bucket);
    return bucket;
  }

  /** Takes one, and waits until it was there to be taken. */
  async wait(key: string, clock: Pick<Clock, 'nowMs' | 'after'>): Promise<void> {
    const nowMs = clock.nowMs();
    const waitMs = this.of(key, nowMs).take(1, nowMs);
    if (waitMs > 0) await new Promise<void>((resolve) => clock.after(waitMs, resolve));
  }

  #sweep(nowMs: number): void {
    let left = sweptAtOnce;
    for (const [key, bucket] of this.#byKey) {
      if (left === 0 || bucket.fullInMs(nowMs) > 0) return;
      left -= 1;
      this.#byKey.delete(key);
    }
  }
}
