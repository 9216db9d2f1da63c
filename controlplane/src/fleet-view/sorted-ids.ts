/** Ids in the order of the store's keys, found by halving. Pure. */
export class SortedIds {
  readonly #ids: string[] = [];

  get size(): number {
    return this.#ids.length;
  }

  add(id: string): void {
    const at = this.#placeOf(id);
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id);
  }

  delete(id: string): void {
    const at = this.#placeOf(id);
    if (this.#ids[at] === id) this.#ids.splice(at, 1);
  }

  /**
   * Those behind `after`. What is added or deleted meanwhile may be told or not; every other id
   * is told once.
   */
  *behind(after: string): Generator<string, void, undefined> {
    let at = this.#placeOf(after);
    for (let last = after; ; ) {
      // Looked for again only where what was added or deleted meanwhile has moved it.
      if (this.#ids[at] !== last) at = this.#placeOf(last);
      if (this.#ids[at] === last) at += 1;
      const id = this.#ids[at];
      if (id === undefined) return;
      yield id;
      last = id;
    }
  }

  /** Where the id is, or would be. */
  #placeOf(id: string): number {
    let low = 0;
    let high = this.#ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ids[middle] ?? '') < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
