/**
 * `watch` for drivers that can read their own log at once: pull a page, deliver, sleep until woken.
 * Nothing is queued per watcher, so a slow watcher costs no memory; a watcher that falls behind the
 * log's trimming ends with `compacted` (S6).
 */
import type { StoreRevision, WatchEvent } from './contract.ts';
import { GapGuard, publicChange, type StoredChange } from './write.ts';

/** How many changes a watcher takes from the log at a time. */
export const PULL_CHANGES_MAX = 256;

export interface ChangeLog {
  /** The store's last revision. */
  latest(): StoreRevision;
  /** Kept changes under `prefix` with a greater revision, ascending, at most `limit`. */
  after(revision: StoreRevision, prefix: string, limit: number): readonly StoredChange[];
}

/** Wakes sleeping watchers. One per handle or per log; `end` wakes them for the last time. */
export class WakeUp {
  readonly #sleepers = new Set<() => void>();
  #ended = false;

  get ended(): boolean {
    return this.#ended;
  }

  wakeAll(): void {
    const sleepers = [...this.#sleepers];
    this.#sleepers.clear();
    for (const wake of sleepers) wake();
  }

  end(): void {
    this.#ended = true;
    this.wakeAll();
  }

  /** Calls `wake` at the next wake-up or at the end; the answer takes it back. */
  next(wake: () => void): () => void {
    this.#sleepers.add(wake);
    return () => this.#sleepers.delete(wake);
  }
}

/** The iteration that `StateStore.watch` answers, over `log`; `from` and `prefix` are checked. */
export async function* pullChanges(
  log: ChangeLog,
  wakeUp: WakeUp,
  from: StoreRevision,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<WatchEvent, void, undefined> {
  let guard = new GapGuard(from);
  const over = () => wakeUp.ended || signal?.aborted === true;
  if (!over() && from > log.latest()) {
    yield { kind: 'compacted', reason: 'fromTheFuture' };
    return;
  }
  let position = from;
  while (!over()) {
    const latest = log.latest();
    const page = log.after(position, prefix, PULL_CHANGES_MAX);
    for (const change of page) {
      if (over()) return;
      if (!guard.follows(change)) {
        yield { kind: 'compacted', reason: 'trimmed' };
        return;
      }
      yield publicChange(change);
      position = change.revision;
    }
    if (page.length === PULL_CHANGES_MAX) continue;
    position = Math.max(position, latest);
    // Everything has been seen, so the guard's knowledge of single keys is not needed any more.
    guard = new GapGuard(position);
    if (!over() && log.latest() === position) await asleep(wakeUp, signal);
  }
}

function asleep(wakeUp: WakeUp, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      forget();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const forget = wakeUp.next(wake);
    signal?.addEventListener('abort', wake, { once: true });
  });
}
