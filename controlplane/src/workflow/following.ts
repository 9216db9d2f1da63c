/**
 * Follows the records under one prefix of the store for ever: first all that there is, then every
 * change; a watch that breaks off or has gaps starts again with a listing.
 */
import type { Clock, Log } from '@rackwright/platform';
import type { Change, Entry, Revision, StateStore } from '@rackwright/store';

export interface Following {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Pause before a watch that broke off starts again. */
  readonly retryDelayMs: number;
  readonly signal: AbortSignal;
}

export interface Follower {
  /** Everything that there is. */
  listed(entries: readonly Entry[]): void;
  changed(change: Change): void;
}

/** Resolves once what there is has been listed; the changes then come by themselves. */
export async function followPrefix(
  following: Following,
  prefix: string,
  follower: Follower,
): Promise<void> {
  const { entries, before } = await following.store.list(prefix);
  follower.listed(entries);
  void watch(following, prefix, follower, before);
}

async function watch(
  following: Following,
  prefix: string,
  follower: Follower,
  from: Revision,
): Promise<void> {
  const { store, clock, log, retryDelayMs, signal } = following;
  try {
    for await (const change of store.watch(from, prefix, signal)) {
      if (change.kind === 'compacted') break;
      follower.changed(change);
    }
  } catch (error) {
    log.warn({ error: String(error) }, `the watch over ${prefix} broke off; it starts again`);
  }
  if (signal.aborted) return;
  clock.after(retryDelayMs, () => {
    if (signal.aborted) return;
    followPrefix(following, prefix, follower).catch(() => watch(following, prefix, follower, from));
  });
}
