/** Whose turn is next among kinds that wait: each gets its share, and none waits for ever. */
import type { Reputation } from './reputation.ts';

/** So many turns of ten each has while all of them wait; of two that wait in the same relation. */
const weights: Readonly<Record<Reputation, number>> = { known: 6, stranger: 3, suspect: 1 };

export class SlotShares {
  /** What each has had: its turns by its weight. */
  readonly #had: Record<Reputation, number> = { known: 0, stranger: 0, suspect: 0 };
  /** Where they are. Who did not wait begins here, and has nothing saved. */
  #now = 0;

  /** Of those that wait the one that is furthest behind. */
  next(waiting: readonly Reputation[]): Reputation | undefined {
    let first: Reputation | undefined;
    for (const each of waiting) {
      if (first === undefined || this.#at(each) < this.#at(first)) first = each;
    }
    return first;
  }

  /** It has had its turn. */
  took(standing: Reputation): void {
    this.#now = this.#at(standing);
    this.#had[standing] = this.#now + 1 / weights[standing];
  }

  #at(standing: Reputation): number {
    return Math.max(this.#had[standing], this.#now);
  }
}
