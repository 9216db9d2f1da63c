/**
 * Which kind of network gets the next slot: each waiting kind gets its share, and none waits for
 * ever.
 */
import type { Reputation } from './reputation.ts';

/**
 * The slots of ten that each kind gets while all of them wait; two that wait share in the same
 * relation.
 */
const weights: Readonly<Record<Reputation, number>> = { known: 6, stranger: 3, suspect: 1 };

export class SlotShares {
  /** The slots of each kind so far, divided by its weight. */
  readonly #had: Record<Reputation, number> = { known: 0, stranger: 0, suspect: 0 };
  /** The present position. A kind that did not wait begins here, and has saved nothing. */
  #now = 0;

  /** The waiting kind that is furthest behind. */
  next(waiting: readonly Reputation[]): Reputation | undefined {
    let first: Reputation | undefined;
    for (const each of waiting) {
      if (first === undefined || this.#at(each) < this.#at(first)) first = each;
    }
    return first;
  }

  /** It has got a slot. */
  take(reputation: Reputation): void {
    this.#now = this.#at(reputation);
    this.#had[reputation] = this.#now + 1 / weights[reputation];
  }

  #at(reputation: Reputation): number {
    return Math.max(this.#had[reputation], this.#now);
  }
}
