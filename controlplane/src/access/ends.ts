/** What follows when a credential of a caller ends: the streams that it opened are notified. */

/** Callbacks for the end of a credential, by the hash of its secret. */
export class Ends {
  readonly #byHash = new Map<string, Set<() => void>>();

  /** Calls `end` when the credential ends, until the returned function is called. */
  add(hash: string, end: () => void): () => void {
    const ends = this.#byHash.get(hash) ?? new Set();
    this.#byHash.set(hash, ends);
    ends.add(end);
    return () => {
      ends.delete(end);
      // A second call must not remove callbacks that were added since.
      if (ends.size === 0 && this.#byHash.get(hash) === ends) this.#byHash.delete(hash);
    };
  }

  /** The credential has ended. */
  notify(hash: string): void {
    for (const end of [...(this.#byHash.get(hash) ?? [])]) end();
  }
}
