/**
 * The driver's memory of its own file, which nobody else writes: the last changes, from which
 * followers of the store are served, and the newest change of keys that were read.
 *
 * Invariants:
 * 1. Everything here is in the file, or in the transaction under way. After a rollback nothing of
 *    it may be read: `forget`.
 * 2. The kept changes are all of those between the first and the last of them: no revision is left
 *    out.
 * 3. Bounded by number and by bytes; the oldest goes first. A key that was read since it was last
 *    passed over stays for one more round (second chance): a read moves nothing.
 */
import type { StoreRevision } from '../contract.ts';
import { isUnder } from '../key.ts';
import type { StoredChange } from '../write.ts';

/** Changes that a follower of the store may be behind without reading the file. */
export const RECENT_CHANGES_MAX = 4_096;
const RECENT_BYTES_MAX = 16 * 1_024 * 1_024;
const NEWEST_BYTES_MAX = 32 * 1_024 * 1_024;
/**
 * The size after a clean-up when it is too large: removing the oldest one by one costs too much.
 */
const NEWEST_BYTES_AFTER = NEWEST_BYTES_MAX * 0.9;
/** The cost of a change beside its value: key, write id, and the object itself. */
const CHANGE_BYTES = 256;

interface Newest {
  change: StoredChange;
  wasAsked: boolean;
}

export class RecentChanges {
  #changes: StoredChange[] = [];
  /** Place of the first that still counts; those before it go together, now and then. */
  #start = 0;
  #changesBytes = 0;
  readonly #newest = new Map<string, Newest>();
  #newestBytes = 0;

  /** The newest change of the key, if it is known here. */
  newest(key: string): StoredChange | undefined {
    const known = this.#newest.get(key);
    if (known === undefined) return undefined;
    known.wasAsked = true;
    return known.change;
  }

  /** Keeps a change that was read as the newest of its key. */
  keepNewest(change: StoredChange): void {
    const known = this.#newest.get(change.key);
    this.#newestBytes += bytesOf(change);
    if (known === undefined) this.#newest.set(change.key, { change, wasAsked: false });
    else {
      this.#newestBytes -= bytesOf(known.change);
      known.change = change;
      known.wasAsked = true;
    }
    if (this.#newestBytes > NEWEST_BYTES_MAX) this.#makeRoom();
  }

  /** (3) Ends, because nothing is read meanwhile. */
  #makeRoom(): void {
    for (const [key, oldest] of this.#newest) {
      if (this.#newestBytes <= NEWEST_BYTES_AFTER) break;
      this.#newest.delete(key);
      if (oldest.wasAsked) {
        oldest.wasAsked = false;
        this.#newest.set(key, oldest);
      } else this.#newestBytes -= bytesOf(oldest.change);
    }
  }

  /** Takes in a change that is being made. */
  add(change: StoredChange): void {
    this.keepNewest(change);
    this.#changes.push(change);
    this.#changesBytes += bytesOf(change);
    const count = () => this.#changes.length - this.#start;
    while (count() > RECENT_CHANGES_MAX || (this.#changesBytes > RECENT_BYTES_MAX && count() > 1)) {
      const oldest = this.#changes[this.#start];
      this.#start += 1;
      this.#changesBytes -= oldest === undefined ? 0 : bytesOf(oldest);
    }
    if (this.#start < RECENT_CHANGES_MAX) return;
    this.#changes = this.#changes.slice(this.#start);
    this.#start = 0;
  }

  /**
   * Changes under `prefix` after `revision`, ascending, at most `limit`; undefined when some of
   * them may be known to the file only.
   */
  after(
    revision: StoreRevision,
    prefix: string,
    limit: number,
  ): readonly StoredChange[] | undefined {
    const first = this.#changes[this.#start]?.revision;
    if (first === undefined || revision + 1 < first) return undefined;
    const found: StoredChange[] = [];
    // (2) The place follows from the revision.
    for (let at = this.#start + revision + 1 - first; at < this.#changes.length; at += 1) {
      if (found.length === limit) break;
      const change = this.#changes[at];
      if (change !== undefined && isUnder(prefix, change.key)) found.push(change);
    }
    return found;
  }

  forget(): void {
    this.#changes = [];
    this.#start = 0;
    this.#changesBytes = 0;
    this.#newest.clear();
    this.#newestBytes = 0;
  }
}

function bytesOf(change: StoredChange): number {
  return CHANGE_BYTES + (change.kind === 'put' ? change.value.byteLength : 0);
}
