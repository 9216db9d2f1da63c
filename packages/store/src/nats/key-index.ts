/**
 * The bucket's live keys in order, kept by following its changes. So a page of a listing asks the
 * servers only for its own values.
 *
 * K1 Once it has caught up with a revision, it has every key that is live at that revision or a
 *    newer one.
 * K2 It begins with the first question, and goes on until the store is closed. Until it has caught
 *    up, a caller can ask the servers for all keys.
 *
 * Must not: say what a key's value is. A key may have been deleted since.
 */
import type { StoreRevision } from '../contract.ts';
import { RESERVED_FIRST_SEGMENT } from '../key.ts';
import { SortedKeys } from './sorted-keys.ts';
import type { KeyChange } from './watching.ts';

interface Waiter {
  readonly revision: StoreRevision;
  readonly go: () => void;
}

/** Ends early, by resolving or rejecting, once the signal is aborted. */
type Pause = (delayMs: number, signal: AbortSignal) => Promise<void>;

export class KeyIndex {
  readonly #keys = new SortedKeys();
  readonly #follow: () => AsyncIterable<KeyChange>;
  readonly #pause: Pause;
  readonly #waiters = new Set<Waiter>();
  #position: StoreRevision = 0;
  #isFollowing = false;

  /** `follow` delivers the last change of each key and then every other, as `followKeys` does. */
  constructor(follow: () => AsyncIterable<KeyChange>, pause: Pause) {
    this.#follow = follow;
    this.#pause = pause;
  }

  /** K1; false when it does not reach that revision in time. */
  async caughtUp(revision: StoreRevision, withinMs: number): Promise<boolean> {
    if (!this.#isFollowing) void this.#run();
    if (this.#position >= revision) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { revision, go: resolve };
    this.#waiters.add(waiter);
    const paused = new AbortController();
    await Promise.race([promise, this.#pause(withinMs, paused.signal)]);
    paused.abort();
    this.#waiters.delete(waiter);
    return this.#position >= revision;
  }

  /** At most `limit` keys behind `after` that are `prefix` or lie below it. */
  under(prefix: string, after: string, limit: number): string[] {
    return this.#keys.under(prefix, after, limit);
  }

  async #run(): Promise<void> {
    this.#isFollowing = true;
    try {
      for await (const change of this.#follow()) this.#note(change);
    } catch {
      // The store is another one now; each caller of the store gets that error as well.
    }
    // Nothing reports later changes to it; it begins anew at the next question.
    this.#isFollowing = false;
    this.#position = 0;
  }

  #note({ kind, key, revision, isWhole }: KeyChange): void {
    if (!key.startsWith(`${RESERVED_FIRST_SEGMENT}.`)) {
      if (kind === 'put') this.#keys.add(key);
      else this.#keys.delete(key);
    }
    // A live key may be missing so far, because it has a newer change.
    if (!isWhole) return;
    this.#position = Math.max(this.#position, revision);
    for (const waiter of this.#waiters) if (waiter.revision <= this.#position) waiter.go();
  }
}
