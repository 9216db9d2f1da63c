/**
 * The store as a caller with a scope sees it: whatever is out of scope is not there, so that no
 * handler can answer it, count it, or let a page token name it.
 *
 * Invariants:
 * 1. A record out of sight is as absent as one that never was, in every way of reading.
 * 2. A watch tells that a record is gone when it leaves sight, and only if it was in sight.
 * 3. Of a record's past only those changes are there that were in sight when they were made.
 *
 * Must not: be given to what writes; checks of a change have to see everything.
 */
import type { Change, Past, Revision, StateStore, WatchEvent } from '@rackwright/store';
import type { Scope } from './principal.ts';
import { type HostsInSight, hostsInSight, isInSight } from './sight.ts';

/** Keys that one watch remembers to have been in sight or out of it. */
const rememberedMax = 65_536;

/** What is in sight for this scope. With `collections` all others are seen as they are. */
export function scopedStore(
  inner: StateStore,
  scope: Scope,
  collections?: readonly string[],
): StateStore {
  return new ScopedStore(inner, scope, collections);
}

class ScopedStore implements StateStore {
  readonly #inner: StateStore;
  readonly #scope: Scope;
  readonly #only: readonly string[] | undefined;

  constructor(inner: StateStore, scope: Scope, only: readonly string[] | undefined) {
    this.#inner = inner;
    this.#scope = scope;
    this.#only = only;
  }

  get driver() {
    return this.#inner.driver;
  }

  get incarnation() {
    return this.#inner.incarnation;
  }

  get survivesPowerLoss() {
    return this.#inner.survivesPowerLoss;
  }

  get log() {
    return this.#inner.log;
  }

  async get(key: string) {
    const found = await this.#inner.get(key);
    if (found.kind === 'absent' || (await this.#sees(found, this.#hosts()))) return found;
    return { kind: 'absent', key } as const;
  }

  async list(prefix: string) {
    const { entries, before } = await this.#inner.list(prefix);
    const hosts = this.#hosts();
    const seen = await Promise.all(entries.map((entry) => this.#sees(entry, hosts)));
    return { entries: entries.filter((_, index) => seen[index]), before };
  }

  async history(key: string) {
    const changes = await this.#inner.history(key);
    return (await this.#inSightThen(changes.toReversed(), undefined)).toReversed();
  }

  async past(key: string, limit: number, from?: Revision): Promise<Past> {
    const past = await this.#inner.past(key, limit, from);
    const { before } = past;
    const last = past.changes.at(-1);
    const older =
      before.kind === 'more' && last?.kind === 'delete'
        ? (await this.#inner.past(key, 1, before.from)).changes[0]
        : undefined;
    return { changes: await this.#inSightThen(past.changes, older), before };
  }

  async *watch(from: Revision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    const seen = new Map<string, boolean>();
    for await (const event of this.#inner.watch(from, prefix, signal)) {
      if (event.kind === 'compacted') {
        yield event;
        continue;
      }
      const told = await this.#asSeen(event, seen);
      if (told !== undefined) yield told;
    }
  }

  put(...given: Parameters<StateStore['put']>) {
    return this.#inner.put(...given);
  }

  delete(...given: Parameters<StateStore['delete']>) {
    return this.#inner.delete(...given);
  }

  latestRevision() {
    return this.#inner.latestRevision();
  }

  close() {
    return this.#inner.close();
  }

  #hosts(): HostsInSight {
    return hostsInSight(this.#inner, this.#scope);
  }

  async #sees(looked: { key: string; value: Uint8Array }, hosts: HostsInSight): Promise<boolean> {
    const collection = looked.key.split('.')[0] ?? '';
    if (this.#only !== undefined && !this.#only.includes(collection)) return true;
    return isInSight(this.#scope, looked, hosts);
  }

  /** Invariant 2. */
  async #asSeen(change: Change, seen: Map<string, boolean>): Promise<Change | undefined> {
    const { key, revision, writeId } = change;
    const isSeen = change.kind === 'put' && (await this.#sees(change, this.#hosts()));
    const wasSeen = isSeen || (seen.get(key) ?? (await this.#wasSeen(key, revision)));
    if (seen.size >= rememberedMax) seen.clear();
    seen.set(key, isSeen);
    if (isSeen) return change;
    return wasSeen ? { kind: 'delete', key, revision, writeId } : undefined;
  }

  /** Whether the change before this one was in sight. */
  async #wasSeen(key: string, revision: Revision): Promise<boolean> {
    const earlier = (await this.#inner.history(key)).findLast(
      (change) => change.revision < revision,
    );
    return earlier?.kind === 'put' && (await this.#sees(earlier, this.#hosts()));
  }

  /** Invariant 3; changes newest first. A delete counts with what it deleted. */
  async #inSightThen(changes: readonly Change[], older: Change | undefined): Promise<Change[]> {
    const hosts = this.#hosts();
    const kept: Change[] = [];
    for (const [index, change] of changes.entries()) {
      const shown = change.kind === 'put' ? change : (changes[index + 1] ?? older);
      if (shown?.kind === 'put' && (await this.#sees(shown, hosts))) kept.push(change);
    }
    return kept;
  }
}
