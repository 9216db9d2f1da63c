/**
 * The fleet's hosts in rows: one component that follows the store and decodes each change once.
 *
 * Invariants:
 * 1. The rows are those of some revision, which the view knows, or of a newer one; it never goes
 *    back while rows are shown.
 * 2. Who has waited for `caughtUp` sees every write that was acknowledged before it asked,
 *    whichever replica made it.
 * 3. What the watch cannot tell without a gap is built anew beside the rows that are shown, and
 *    takes their place once it is whole.
 * 4. A record that cannot be decoded is a row that says so. It stops nothing.
 * 5. Records that are no hosts are followed from when somebody first asks for their kind: most
 *    fleets never do.
 * 6. Who listens is told of every row that differs from what was shown before, once the rows show
 *    it; also of what has changed while the watch told nothing.
 *
 * Must not: be asked where a host is decided on. That is done by its own record.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  type HostId,
  type HostState,
  type RackName,
  unavailable,
  store as wire,
} from '@rackwright/messages';
import { type Clock, type Log, pause } from '@rackwright/platform';
import type { Change, Entry, Revision, StateStore } from '@rackwright/store';
import {
  answered,
  idOf,
  idOfKey,
  isDirectlyBelow,
  listingsOf,
  sharedRecordOf,
} from '../records/index.ts';
import { Collection, type CollectionKind, type Found } from './collection.ts';
import { factTraits } from './fact-traits.ts';
import { type FleetRow, rowOf, type UnreadableRow } from './row.ts';
import { FleetRows, type IndexedField, isIndexed } from './rows.ts';
import type { FleetTally } from './tally.ts';

const prefix = 'hosts';
/** Hosts that are read at once when the view is built. */
const buildEntries = 500;
/** While it is built, so often somebody hears how far that has come. */
const progressMs = 5_000;
/** How long a caller waits for the view to see what was acknowledged before. */
const waitMsMax = 10_000;

export interface FleetViewDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Pause before a watch that broke off starts again. */
  readonly retryDelayMs: number;
}

/** How many hosts there are, in each state, and whose record cannot be read. */
export interface FleetCounts {
  readonly hosts: number;
  readonly byState: ReadonlyMap<HostState, number>;
  readonly unreadable: readonly UnreadableRow[];
}

/** Told of a host's row as it was and as it is; undefined: there was none, there is none. */
export type RowListener = (before: FleetRow | undefined, after: FleetRow | undefined) => void;

/** Told of a record that was read or written; not of one that cannot be decoded. */
export type RecordListener = (hostId: HostId, revision: Revision, record: wire.HostRecord) => void;

/** What hosts are looked for: those that have all that is named. */
export interface HostsWanted {
  /** "hosts/HOST" */
  readonly names: readonly string[];
  /** "racks/RACK"; empty: any. */
  readonly rack: RackName;
  readonly labels: Readonly<Record<string, string>>;
}

interface Waiter {
  readonly wanted: Revision;
  readonly go: () => void;
}

export class FleetView {
  readonly #deps: FleetViewDependencies;
  #rows = new FleetRows();
  /** (5) Those that somebody has asked for since the view was built. */
  #collections = new Map<CollectionKind<unknown>, Collection<unknown>>();
  #revision: Revision = 0;
  #starting: Promise<void> | undefined;
  readonly #waiters = new Set<Waiter>();
  readonly #listeners = new Set<RowListener>();
  readonly #recordListeners = new Set<RecordListener>();
  readonly #stopping = new AbortController();

  constructor(deps: FleetViewDependencies) {
    this.#deps = deps;
  }

  /** Resolves once the view stands; rejects, and may be asked again, when it cannot be read. */
  start(): Promise<void> {
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Every change up to this one is in the rows. */
  get revision(): Revision {
    return this.#revision;
  }

  /** Invariant 2. Throws `unavailable`. */
  async caughtUp(): Promise<void> {
    const { store, clock } = this.#deps;
    await answered(this.start());
    const wanted = await answered(store.latestRevision());
    if (this.#revision >= wanted) return;
    await new Promise<void>((resolve, reject) => {
      const cancel = clock.after(waitMsMax, () => {
        this.#waiters.delete(waiter);
        reject(unavailable('VIEW_BEHIND', 'The list of hosts is not up to date yet; try again.'));
      });
      const go = () => {
        cancel();
        resolve();
      };
      const waiter: Waiter = { wanted, go };
      this.#waiters.add(waiter);
    });
  }

  /** (6) From now on, until `signal` aborts. */
  onChange(listener: RowListener, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener), { once: true });
  }

  /**
   * From now on: each record as it is decoded, of every host when the view is built. Nobody may
   * keep more of it than it needs, or change it.
   */
  onRecord(listener: RecordListener): void {
    this.#recordListeners.add(listener);
  }

  row(hostId: HostId): FleetRow | undefined {
    return this.#rows.get(hostId);
  }

  /**
   * Ids of hosts of which one may have all that is wanted, in no order: found by the part of it
   * that the fewest have. Nothing is wanted: none.
   */
  candidates({ names, rack, labels }: HostsWanted): Iterable<string> {
    if (names.length > 0) return names.map(idOf);
    const having: (readonly [IndexedField, string])[] = Object.entries(labels).map(
      ([key, value]) => ['label', `${key}=${value}`],
    );
    if (rack !== '') having.push(['rack', rack]);
    const fewest = this.#fewest(having);
    return fewest === undefined ? [] : this.#rows.idsBy(...fewest);
  }

  /** Ids behind `after` of the hosts whose field has this value, in the order of their keys. */
  idsBy(field: IndexedField, value: string, after = ''): Iterable<string> {
    return this.#rows.idsBy(field, value, after);
  }

  /**
   * Ids of the hosts whose record or facts have one of these traits (keys of `traits.ts`), in
   * order, as of every write that was acknowledged before. The first who asks waits until the facts
   * of all hosts have been read. Throws `unavailable`.
   */
  async hostsLike(keys: Iterable<string>): Promise<readonly string[]> {
    const facts = await this.collection(factTraits);
    const ids = new Set<string>();
    for (const key of keys) {
      for (const hostId of this.#rows.idsByTrait(key)) ids.add(hostId);
      for (const hostId of facts.idsBy(key)) ids.add(hostId);
    }
    return [...ids].sort();
  }

  /**
   * The records of this kind, as of every write that was acknowledged before, and from then on as
   * they change. The first who asks waits until all have been read. Throws `unavailable`. What is
   * answered hears of nothing more once the view is built anew.
   */
  async collection<T>(kind: CollectionKind<T>): Promise<Found<T>> {
    for (;;) {
      await this.caughtUp();
      const collections = this.#collections as Map<CollectionKind<T>, Collection<T>>;
      const { signal } = this.#stopping;
      const found =
        collections.get(kind) ?? new Collection(kind, this.#deps, this.#revision, signal);
      collections.set(kind, found);
      try {
        await answered(found.read());
      } catch (error) {
        if (collections.get(kind) === found) collections.delete(kind);
        throw error;
      }
      // Another one: the view was built anew meanwhile.
      if (this.#collections.get(kind as CollectionKind<unknown>) === found) return found;
    }
  }

  /** How many hosts a rule, "racks/RACK rule NAME", has made of machines. */
  madeByRule(rule: string): number {
    return this.#rows.countBy('rule', rule);
  }

  /**
   * Rows of hosts behind the id `after`, in order. With `having` only of those that have all these
   * values: found by the one that the fewest have, so that some of them may lack the others.
   */
  *rows(after = '', having: ReadonlyMap<string, string> = new Map()): Generator<FleetRow> {
    const rows = this.#rows;
    const known = [...having].flatMap(([field, value]) =>
      isIndexed(field) ? [[field, value] as const] : [],
    );
    const fewest = this.#fewest(known);
    if (fewest === undefined) {
      yield* rows.behind(after);
      return;
    }
    for (const hostId of rows.idsBy(...fewest, after)) {
      const row = rows.get(hostId);
      if (row !== undefined) yield row;
    }
  }

  /** How many hosts have each value of a field that any has. */
  countsBy(field: IndexedField): ReadonlyMap<string, number> {
    return this.#rows.countsBy(field);
  }

  counts(): FleetCounts {
    const byState = new Map(this.#rows.tally.byState);
    return { hosts: this.#rows.size, byState, unreadable: this.#rows.unreadable() };
  }

  /** As of `revision`. It goes on counting: whoever keeps it copies what it needs. */
  get tally(): FleetTally {
    return this.#rows.tally;
  }

  /** Hosts whose record cannot be read. */
  get unreadableCount(): number {
    return this.#rows.unreadableCount;
  }

  /** Of these values the one that the fewest hosts have. */
  #fewest(having: readonly (readonly [IndexedField, string])[]) {
    let fewest: readonly [IndexedField, string] | undefined;
    let count = Number.POSITIVE_INFINITY;
    for (const each of having) {
      const of = this.#rows.countBy(...each);
      if (of < count) [fewest, count] = [each, of];
    }
    return fewest;
  }

  async #start(): Promise<void> {
    await this.#build();
    void this.#follow();
  }

  /** (3) From the first page's revision on, the watch brings what the pages may have missed. */
  async #build(): Promise<void> {
    const rows = new FleetRows();
    let from: Revision | undefined;
    const { store, clock, log } = this.#deps;
    let toldMs = clock.nowMs();
    // What people and agents wait for has its turn in between.
    const pages = { limit: buildEntries, between: () => this.#pause(0) };
    for await (const page of listingsOf((each) => store.list(prefix, each), pages)) {
      from ??= page.before;
      for (const entry of page.entries) {
        if (isDirectlyBelow(prefix, entry.key)) rows.put(rowOf(entry, this.#decodeAnew));
      }
      if (clock.nowMs() < toldMs + progressMs) continue;
      toldMs = clock.nowMs();
      log.info({ hosts: rows.size }, 'the hosts are being read');
    }
    if (from === undefined) return;
    const before = this.#rows;
    this.#rows = rows;
    this.#revision = from;
    // What has changed since they were read, up to this revision, no watch tells.
    this.#collections = new Map();
    this.#tell();
    if (this.#listeners.size > 0) this.#tellDifferences(before, rows);
  }

  async #follow(): Promise<void> {
    const { store, log, retryDelayMs } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        // All of the store, so that the view's revision is the store's.
        for await (const change of store.watch(this.#revision, '', signal)) {
          if (change.kind === 'compacted') break;
          this.#note(change);
        }
      } catch (error) {
        log.warn({}, 'the watch of the fleet broke off; it starts again', error);
      }
      await this.#pause(retryDelayMs);
      await this.#rebuild();
    }
  }

  #note(change: Change): void {
    const { key, revision } = change;
    if (isDirectlyBelow(prefix, key)) {
      const hostId = idOfKey(key);
      const before = this.#rows.get(hostId);
      if (change.kind === 'put') this.#rows.put(rowOf(change, this.#decodeShared));
      else this.#rows.take(hostId, revision);
      this.#changed(before, this.#rows.get(hostId));
    }
    for (const collection of this.#collections.values()) collection.note(change);
    this.#revision = Math.max(this.#revision, revision);
    this.#tell();
  }

  #changed(before: FleetRow | undefined, after: FleetRow | undefined): void {
    if (before?.revision === after?.revision) return;
    for (const listener of this.#listeners) {
      try {
        listener(before, after);
      } catch (error) {
        const { hostId: host = '' } = after ?? before ?? {};
        this.#deps.log.warn({ host }, 'who was told of the host failed', error);
      }
    }
  }

  /** (6) What was built may show what no change has told. */
  #tellDifferences(before: FleetRows, after: FleetRows): void {
    for (const row of after.behind()) this.#changed(before.get(row.hostId), row);
    for (const row of before.behind()) {
      if (after.get(row.hostId) === undefined) this.#changed(row, undefined);
    }
  }

  async #rebuild(): Promise<void> {
    const { log, retryDelayMs } = this.#deps;
    while (!this.#stopping.signal.aborted) {
      try {
        return await this.#build();
      } catch (error) {
        log.warn({}, 'the fleet could not be read; it is tried again', error);
        await this.#pause(retryDelayMs);
      }
    }
  }

  /** Most of what a whole fleet is read for is not asked for again: it is not kept decoded. */
  readonly #decodeAnew = (entry: Entry): wire.HostRecord =>
    this.#told(entry, fromBinary(wire.HostRecordSchema, entry.value));

  /** As everybody else who reads it decodes it: once. */
  readonly #decodeShared = (entry: Entry): wire.HostRecord =>
    this.#told(entry, sharedRecordOf(this.#deps.store, wire.HostRecordSchema, entry));

  #told({ key, revision }: Entry, record: wire.HostRecord): wire.HostRecord {
    const host = idOfKey(key);
    for (const listener of this.#recordListeners) {
      try {
        listener(host, revision, record);
      } catch (error) {
        this.#deps.log.warn({ host }, 'who was told of the record failed', error);
      }
    }
    return record;
  }

  #tell(): void {
    for (const waiter of this.#waiters) {
      if (waiter.wanted > this.#revision) continue;
      this.#waiters.delete(waiter);
      waiter.go();
    }
  }

  /** Ends at once when the view is stopped. */
  #pause(delayMs: number): Promise<void> {
    return pause(this.#deps.clock, delayMs, this.#stopping.signal);
  }
}
