/** Ids in the order of the store's keys, with binary search. Pure. */
export class SortedIds {
  readonly #ids: string[] = [];

  get size(): number {
    return this.#ids.length;
  }

  add(id: string): void {
    const at = this.#indexOf(id);
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id);
  }

  delete(id: string): void {
    const at = this.#indexOf(id);
    if (this.#ids[at] === id) this.#ids.splice(at, 1);
  }

  /**
   * The ids after `after`. Ids that are added or deleted during the iteration may appear or not;
   * every other id appears once.
   */
  *behind(after: string): Generator<string, void, undefined> {
    let at = this.#indexOf(after);
    for (let last = after; ; ) {
      // Searched again only where an insertion or deletion has moved it.
      if (this.#ids[at] !== last) at = this.#indexOf(last);
      if (this.#ids[at] === last) at += 1;
      const id = this.#ids[at];
      if (id === undefined) return;
      yield id;
      last = id;
    }
  }

  /** The index of the id, or where it would be inserted. */
  #indexOf(id: string): number {
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

/** The ids of several sources, each in order, as one in order. An id of two sources comes once. */
export function* mergedIds(
  sources: readonly Generator<string, void, undefined>[],
): Generator<string, void, undefined> {
  const heads = sources.map((source) => ({ source, next: source.next() }));
  for (;;) {
    let first: string | undefined;
    for (const { next } of heads) {
      if (next.done !== true && (first === undefined || next.value < first)) first = next.value;
    }
    if (first === undefined) return;
    yield first;
    for (const head of heads) if (head.next.value === first) head.next = head.source.next();
  }
}
