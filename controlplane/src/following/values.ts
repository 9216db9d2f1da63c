/** Following for readers that want the present value of each key, and its deletion. */
import type { Entry } from '@rackwright/store';
import type { StoreFollower } from './following.ts';

/** Called with each value; `undefined` when the key no longer has one. */
export type NoteValue = (key: string, entry: Entry | undefined) => void;

/** One prefix, followed from `start` to `stop`. */
export interface FollowedValues {
  /** Resolves once all present values were reported; rejects when the listing fails. */
  start(): Promise<void>;
  stop(): void;
}

/**
 * Reports every value under `prefix` to `note`, and every change. A deletion that no watch saw is
 * reported with the next listing.
 */
export function followValues(
  following: StoreFollower,
  prefix: string,
  note: NoteValue,
): FollowedValues {
  const stopping = new AbortController();
  let known = new Set<string>();
  return {
    start: () =>
      following.follow(
        prefix,
        {
          listed: ({ entries }) => {
            const there = new Set(entries.map(({ key }) => key));
            const gone = [...known].filter((key) => !there.has(key));
            known = there;
            for (const entry of entries) note(entry.key, entry);
            for (const key of gone) note(key, undefined);
          },
          changed: (change) => {
            if (change.kind === 'put') known.add(change.key);
            else known.delete(change.key);
            note(change.key, change.kind === 'put' ? change : undefined);
          },
        },
        stopping.signal,
      ),
    stop: () => stopping.abort(),
  };
}
