/** Ids of hosts by a value, in the order of the store's keys. Pure. */
import { SortedIds } from './sorted-ids.ts';

/** Most values have one id, which needs no list. */
export class IdsByValue {
  readonly #ids = new Map<string, string | SortedIds>();

  add(value: string, id: string): void {
    const known = this.#ids.get(value);
    if (known === undefined || known === id) {
      this.#ids.set(value, id);
      return;
    }
    const ids = typeof known === 'string' ? new SortedIds() : known;
    if (typeof known === 'string') ids.add(known);
    ids.add(id);
    this.#ids.set(value, ids);
  }

  delete(value: string, id: string): void {
    const known = this.#ids.get(value);
    if (known === id) this.#ids.delete(value);
    if (!(known instanceof SortedIds)) return;
    known.delete(id);
    if (known.size === 0) this.#ids.delete(value);
  }

  *behind(value: string, after: string): Generator<string, void, undefined> {
    const known = this.#ids.get(value);
    if (known instanceof SortedIds) yield* known.behind(after);
    else if (known !== undefined && known > after) yield known;
  }

  sizeOf(value: string): number {
    const known = this.#ids.get(value);
    return known instanceof SortedIds ? known.size : known === undefined ? 0 : 1;
  }

  /** The number of ids for each value. */
  *sizes(): Generator<readonly [string, number], void, undefined> {
    for (const value of this.#ids.keys()) yield [value, this.sizeOf(value)];
  }
}
