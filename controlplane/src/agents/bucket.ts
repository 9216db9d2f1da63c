/** A token bucket: what may be taken at once, and how fast that comes back. */
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

  /** A clock that goes back fills nothing, and begins anew from there. */
  #fill(nowMs: number): void {
    const filled = (Math.max(0, nowMs - this.#filledMs) * this.#perSecond) / 1_000;
    this.#left = Math.min(this.#most, this.#left + filled);
    this.#filledMs = nowMs;
  }
}
