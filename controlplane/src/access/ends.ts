/** What follows when a credential of a caller ends: streams that it opened are told. */

/** What is called once a credential ends, by the hash of its secret. */
export class Ends {
  readonly #byHash = new Map<string, Set<() => void>>();

  /** Calls `end` once it ends, until the returned function is called. */
  add(hash: string, end: () => void): () => void {
    const ends = this.#byHash.get(hash) ?? new Set();
    this.#byHash.set(hash, ends);
    ends.add(end);
    return () => {
      ends.delete(end);
      // Called twice, it must not forget those who were added meanwhile.
      if (ends.size === 0 && this.#byHash.get(hash) === ends) this.#byHash.delete(hash);
    };
  }

  /** It has ended. */
  tell(hash: string): void {
    for (const end of [...(this.#byHash.get(hash) ?? [])]) end();
  }
}
