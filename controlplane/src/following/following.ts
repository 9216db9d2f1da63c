/**
 * Follows the records of the store for all parts of this process: one watch for each prefix, shared
 * by all followers.
 *
 *  F1 A follower first gets a listing of a prefix, then every change. No change is missed: changes
 *     during the listing wait for it. After the listing, no older change of a listed record
 *     follows: a store may list values newer than the position of the listing.
 *  F2 A watch that breaks off, or has gaps, starts again with a listing for all followers. A failed
 *     listing is retried after a pause, without end.
 *  F3 A follower that throws does not disturb the others, and gets a listing again.
 *
 * Must not: decode anything. `records` decodes each write once for all readers.
 */
import type { Clock, Log } from '@rackwright/platform';
import type { Change, Listing, StateStore, StoreRevision } from '@rackwright/store';

/** The most changes that wait for a listing; with more the listing is repeated. */
const waitingMax = 4_096;

export interface FollowingDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Pause before a broken watch starts again. */
  readonly retryDelayMs: number;
}

export interface Follower {
  /** A new listing is about to begin. */
  listing?(): void;
  /** All present records. */
  listed(listing: Listing): void;
  changed(change: Change): void;
}

/** A follower. */
interface JoinedFollower {
  readonly follower: Follower;
  readonly signal: AbortSignal;
  /** Changes since its listing began; undefined: it is over. */
  waiting: Change[] | undefined;
  /** Every later change comes from the watch. */
  since: StoreRevision;
  /** Revisions of listed records, by key, whose change the watch has not brought yet. */
  ahead: ReadonlyMap<string, StoreRevision>;
}

/** The records of a listing that are newer than its position. */
function aheadOf({ entries, before }: Listing): ReadonlyMap<string, StoreRevision> {
  const later = entries.filter(({ revision }) => revision > before);
  return new Map(later.map(({ key, revision }) => [key, revision]));
}

export class StoreFollower {
  readonly #deps: FollowingDependencies;
  readonly #prefixes = new Map<string, FollowedPrefix>();
  readonly #stopping = new AbortController();

  constructor(deps: FollowingDependencies) {
    this.#deps = deps;
  }

  /**
   * Resolves once the listing is done; changes then follow until `signal` aborts. Rejects, and
   * follows nothing, when the listing fails.
   */
  follow(prefix: string, follower: Follower, signal: AbortSignal): Promise<void> {
    let followed = this.#prefixes.get(prefix);
    if (followed === undefined) {
      followed = new FollowedPrefix(this.#deps, prefix, this.#stopping.signal);
      this.#prefixes.set(prefix, followed);
    }
    return followed.join(follower, signal);
  }

  /** Ends all following. */
  stop(): void {
    this.#stopping.abort();
  }
}

class FollowedPrefix {
  readonly #deps: FollowingDependencies;
  readonly #prefix: string;
  readonly #signal: AbortSignal;
  readonly #joined = new Set<JoinedFollower>();
  /** Resolves once the watch runs; undefined: it was not started. */
  #opening: Promise<void> | undefined;
  /** Every change up to here came from the watch, or is in a listing. */
  #position: StoreRevision = 0;

  constructor(deps: FollowingDependencies, prefix: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#prefix = prefix;
    this.#signal = signal;
  }

  async join(follower: Follower, signal: AbortSignal): Promise<void> {
    this.#opening ??= this.#open();
    await this.#opening;
    const since = this.#position;
    const joined: JoinedFollower = { follower, signal, waiting: [], since, ahead: new Map() };
    this.#joined.add(joined);
    signal.addEventListener('abort', () => this.#joined.delete(joined), { once: true });
    try {
      await this.#list(joined);
    } catch (error) {
      this.#joined.delete(joined);
      throw error;
    }
  }

  async #open(): Promise<void> {
    try {
      this.#position = await this.#deps.store.latestRevision();
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
    void this.#watch();
  }

  /** F1: only a listing at or after the start of its changes leaves no gap before them. */
  async #list(joined: JoinedFollower): Promise<void> {
    for (;;) {
      joined.waiting = [];
      joined.follower.listing?.();
      const listing = await this.#deps.store.list(this.#prefix);
      if (joined.signal.aborted) return;
      const { waiting } = joined;
      if (listing.before < joined.since || waiting.length > waitingMax) {
        await this.#pause();
        continue;
      }
      joined.follower.listed(listing);
      joined.waiting = undefined;
      joined.ahead = aheadOf(listing);
      const later = waiting.filter(({ revision }) => revision > listing.before);
      for (const change of later) this.#notify(joined, change);
      return;
    }
  }

  #notify(joined: JoinedFollower, change: Change): void {
    const { waiting, follower } = joined;
    if (waiting !== undefined) {
      if (waiting.length <= waitingMax) waiting.push(change);
      return;
    }
    if (change.revision <= (joined.ahead.get(change.key) ?? 0)) return;
    this.#try(joined, () => follower.changed(change));
  }

  /** F3 */
  #try(joined: JoinedFollower, notify: () => void): void {
    try {
      notify();
    } catch (error) {
      this.#warn(error, 'who follows it failed; it is listed again');
      joined.waiting = [];
      void this.#listLater(joined);
    }
  }

  async #listLater(joined: JoinedFollower): Promise<void> {
    for (;;) {
      await this.#pause();
      if (this.#signal.aborted || joined.signal.aborted) return;
      try {
        return await this.#list(joined);
      } catch (error) {
        this.#warn(error, 'it could not be listed; it is tried again');
      }
    }
  }

  /** F2 */
  async #watch(): Promise<void> {
    const { store } = this.#deps;
    while (!this.#signal.aborted) {
      try {
        for await (const change of store.watch(this.#position, this.#prefix, this.#signal)) {
          if (change.kind === 'compacted') break;
          this.#position = Math.max(this.#position, change.revision);
          for (const joined of [...this.#joined]) this.#notify(joined, change);
        }
      } catch (error) {
        this.#warn(error, 'the watch broke off; it starts again');
      }
      do {
        await this.#pause();
        if (this.#signal.aborted) return;
      } while (!(await this.#listForAll()));
    }
  }

  /** False: the listing failed. */
  async #listForAll(): Promise<boolean> {
    try {
      for (const { follower } of this.#joined) follower.listing?.();
      const listing = await this.#deps.store.list(this.#prefix);
      this.#position = listing.before;
      for (const joined of [...this.#joined]) {
        joined.since = listing.before;
        if (joined.waiting !== undefined) {
          joined.waiting = [];
          continue;
        }
        joined.ahead = aheadOf(listing);
        this.#try(joined, () => joined.follower.listed(listing));
      }
      return true;
    } catch (error) {
      this.#warn(error, 'it could not be listed; it is tried again');
      return false;
    }
  }

  #pause(): Promise<void> {
    const { clock, retryDelayMs } = this.#deps;
    return new Promise((resolve) => clock.after(retryDelayMs, resolve));
  }

  #warn(error: unknown, text: string): void {
    this.#deps.log.warn({ records: this.#prefix }, text, error);
  }
}
