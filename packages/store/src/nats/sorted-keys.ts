/**
 * Keys in their order (code units). Added keys are sorted in at the next read: a bucket's keys
 * arrive in the order of their writes, and to sort them in one by one takes quadratic time.
 */
export class SortedKeys {
  /** Those that are in. */
  readonly #keys = new Set<string>();
  /** All of them but `#added`, in order, and some that were deleted. */
  #sorted: string[] = [];
  #added: string[] = [];
  /** Of `#sorted` and `#added` together. */
  #deleted = 0;

  get size(): number {
    return this.#keys.size;
  }

  add(key: string): void {
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    this.#added.push(key);
  }

  delete(key: string): void {
    if (this.#keys.delete(key)) this.#deleted += 1;
  }

  /** At most `limit` keys behind `after` that are `prefix` or lie below it. */
  under(prefix: string, after: string, limit: number): string[] {
    this.#sortIn();
    if (prefix === '') return this.#range(after, '', limit);
    const itself = after < prefix && this.#keys.has(prefix) ? [prefix] : [];
    const below = `${prefix}.`;
    const start = after < below ? below : after;
    return [...itself, ...this.#range(start, below, limit)].slice(0, limit);
  }

  #range(after: string, below: string, limit: number): string[] {
    const found: string[] = [];
    for (let at = this.#indexBehind(after); found.length < limit; at += 1) {
      const key = this.#sorted[at];
      if (key === undefined || !key.startsWith(below)) break;
      if (this.#keys.has(key)) found.push(key);
    }
    return found;
  }

  #sortIn(): void {
    const isMostlyDeleted = this.#deleted > 64 && this.#deleted > this.#keys.size;
    if (this.#added.length === 0 && !isMostlyDeleted) return;
    if (this.#added.length > 64 || isMostlyDeleted) {
      this.#sorted = [...this.#keys].sort();
      this.#deleted = 0;
    } else {
      for (const key of this.#added) {
        const at = this.#indexBehind(key);
        // It was deleted and is there again.
        if (this.#sorted[at - 1] === key) this.#deleted -= 1;
        else this.#sorted.splice(at, 0, key);
      }
    }
    this.#added = [];
  }

  /** The index of the first key behind `after`. */
  #indexBehind(after: string): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle] ?? '') <= after) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
