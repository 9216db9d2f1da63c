/**
 * What a prefix of the store holds, as it changes: a look at everything, then the watch, and both
 * again when the watch breaks off or has gaps.
 */
import type { Clock, Log } from '@rackwright/platform';
import type { Revision, StateStore } from '@rackwright/store';

/** What following needs. */
export interface FollowParts {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** Told of each value; `undefined` when the key has none any more. Never throws. */
export type NoteValue = (key: string, value: Uint8Array | undefined, revision: Revision) => void;

/** Pause before a watch that broke off starts again, milliseconds. */
const retryDelayMs = 1_000;

/** One prefix, followed from `start` to `stop`. */
export class FollowedPrefix {
  readonly #parts: FollowParts;
  readonly #prefix: string;
  readonly #note: NoteValue;
  readonly #stopping = new AbortController();
  #known = new Set<string>();

  constructor(parts: FollowParts, prefix: string, note: NoteValue) {
    this.#parts = parts;
    this.#prefix = prefix;
    this.#note = note;
  }

  /** Resolves once everything that is there has been told. */
  async start(): Promise<void> {
    const from = await this.#look();
    void this.#follow(from);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #look(): Promise<Revision> {
    const { entries, before } = await this.#parts.store.list(this.#prefix);
    const there = new Set(entries.map(({ key }) => key));
    for (const { key, value, revision } of entries) this.#note(key, value, revision);
    for (const key of this.#known) if (!there.has(key)) this.#note(key, undefined, before);
    this.#known = there;
    return before;
  }

  async #follow(from: Revision): Promise<void> {
    const { store, log, clock } = this.#parts;
    const { signal } = this.#stopping;
    try {
      for await (const change of store.watch(from, this.#prefix, signal)) {
        if (change.kind === 'compacted') break;
        if (change.kind === 'put') this.#known.add(change.key);
        else this.#known.delete(change.key);
        this.#note(change.key, change.kind === 'put' ? change.value : undefined, change.revision);
      }
    } catch (error) {
      log.warn(
        { error: String(error) },
        `the watch over ${this.#prefix} broke off; it starts again`,
      );
    }
    if (signal.aborted) return;
    clock.after(retryDelayMs, () => {
      this.#look().then(
        (before) => this.#follow(before),
        () => this.#follow(from),
      );
    });
  }
}
