/** Following for whoever wants the value of each key as it is now, and to hear when it is gone. */
import type { Entry } from '@rackwright/store';
import type { Following } from './following.ts';

/** Told of each value; `undefined` when the key has none any more. */
export type NoteValue = (key: string, entry: Entry | undefined) => void;

/** One prefix, followed from `start` to `stop`. */
export interface FollowedValues {
  /** Resolves once everything that is there has been told; rejects when it cannot be listed. */
  start(): Promise<void>;
  stop(): void;
}

/**
 * Tells `note` of every value under `prefix`, and of every change; what went while nobody watched
 * is told as gone once it is listed again.
 */
export function followValues(
  following: Following,
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
