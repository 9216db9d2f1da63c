/**
 * The fleet's hosts in rows: one component that follows the store and decodes each change once.
 *
 * Invariants:
 * 1. The rows show the store at a known revision or a newer one; the view never goes back while it
 *    shows rows.
 * 2. After `caughtUp`, the caller sees every write that was acknowledged before the call, on any
 *    replica.
 * 3. When the watch has a gap, new rows are built while the old ones are shown, and replace them
 *    once complete.
 * 4. A record that cannot be decoded is a row that says so. It stops nothing.
 * 5. Records of other kinds than hosts are followed only after the first request for their kind:
 *    most fleets never need them.
 * 6. An observer gets every row that differs from the one shown before, once the new one is shown;
 *    also changes that the watch did not report.
 *
 * Must not: be used to decide about a host. Its own record is used for that.
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
import type { Change, Entry, StateStore, StoreRevision } from '@rackwright/store';
import {
  idOf,
  idOfKey,
  isDirectlyBelow,
  listingsOf,
  orUnavailable,
  sharedRecordOf,
} from '../records/index.ts';
import { Collection, type CollectionKind, type FoundRecords } from './collection.ts';
import { factTraits } from './fact-traits.ts';
import { type FleetRow, rowOf, type UnreadableRow } from './row.ts';
import { type FieldValue, FleetRows, type IndexedField, isIndexed } from './rows.ts';
import type { FleetTally } from './tally.ts';

const prefix = 'hosts';
/** Hosts that are read at once when the view is built. */
const buildEntries = 500;
/** How often the progress of building is logged. */
const progressMs = 5_000;
/** How long a caller waits for the view to show earlier acknowledged writes. */
const waitMsMax = 10_000;

export interface FleetViewDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Pause before a broken watch starts again. */
  readonly retryDelayMs: number;
}

/** The number of hosts: in total, in each state, and with an unreadable record. */
export interface FleetCounts {
  readonly hosts: number;
  readonly byState: ReadonlyMap<HostState, number>;
  readonly unreadable: readonly UnreadableRow[];
}

/** Called with a host's row before and after; undefined: there was none, there is none. */
export type RowObserver = (before: FleetRow | undefined, after: FleetRow | undefined) => void;

/** Called with a record that was read or written; not with one that cannot be decoded. */
export type RecordObserver = (
  hostId: HostId,
  revision: StoreRevision,
  record: wire.HostRecord,
) => void;

/** The conditions for hosts: all that are set must match. */
export interface HostConditions {
  /** "hosts/HOST" */
  readonly names: readonly string[];
  /** "racks/RACK"; empty: any. */
  readonly rack: RackName;
  readonly labels: Readonly<Record<string, string>>;
}

interface Waiter {
  readonly wanted: StoreRevision;
  readonly go: () => void;
}

export class FleetView {
  readonly #deps: FleetViewDependencies;
  #rows = new FleetRows();
  /** (5) The kinds that were requested since the view was built. */
  #collections = new Map<CollectionKind<unknown>, Collection<unknown>>();
  #revision: StoreRevision = 0;
  #starting: Promise<void> | undefined;
  readonly #waiters = new Set<Waiter>();
  readonly #observers = new Set<RowObserver>();
  readonly #recordObservers = new Set<RecordObserver>();
  readonly #stopping = new AbortController();

  constructor(deps: FleetViewDependencies) {
    this.#deps = deps;
  }

  /** Resolves once the view is built; rejects when it cannot be read, and may be called again. */
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
  get revision(): StoreRevision {
    return this.#revision;
  }

  /** Invariant 2. Throws `unavailable`. */
  async caughtUp(): Promise<void> {
    const { store, clock } = this.#deps;
    await orUnavailable(this.start());
    const wanted = await orUnavailable(store.presentRevision());
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
  onChange(observer: RowObserver, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#observers.add(observer);
    signal.addEventListener('abort', () => this.#observers.delete(observer), { once: true });
  }

  /**
   * From now on: each record as it is decoded; all hosts when the view is built. An observer must
   * not change the record, and must keep only what it needs.
   */
  onRecord(observer: RecordObserver): void {
    this.#recordObservers.add(observer);
  }

  row(hostId: HostId): FleetRow | undefined {
    return this.#rows.get(hostId);
  }

  /**
   * Ids of hosts that may meet all conditions, in no order: from the condition with the fewest
   * hosts. Without a condition: none.
   */
  candidates({ names, rack, labels }: HostConditions): Iterable<string> {
    if (names.length > 0) return names.map(idOf);
    const having: FieldValue[] = Object.entries(labels).map(([key, value]) => [
      'label',
      `${key}=${value}`,
    ]);
    if (rack !== '') having.push(['rack', rack]);
    const fewest = this.#fewest(having);
    return fewest === undefined ? [] : this.#rows.idsBy(...fewest);
  }

  /** Ids after `after` of the hosts whose field has this value, in the order of their keys. */
  idsBy(field: IndexedField, value: string, after = ''): Iterable<string> {
    return this.#rows.idsBy(field, value, after);
  }

  /**
   * Ids of the hosts whose record or facts have one of these traits (keys of `traits.ts`), in
   * order, including every write that was acknowledged before. The first caller waits until the
   * facts of all hosts have been read. Throws `unavailable`.
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
   * The records of this kind, including every write that was acknowledged before, and later
   * changes. The first caller waits until all have been read. Throws `unavailable`. The result gets
   * no more changes once the view is built again.
   */
  async collection<T>(kind: CollectionKind<T>): Promise<FoundRecords<T>> {
    for (;;) {
      await this.caughtUp();
      const collections = this.#collections as Map<CollectionKind<T>, Collection<T>>;
      const { signal } = this.#stopping;
      const found =
        collections.get(kind) ?? new Collection(kind, this.#deps, this.#revision, signal);
      collections.set(kind, found);
      try {
        await orUnavailable(found.read());
      } catch (error) {
        if (collections.get(kind) === found) collections.delete(kind);
        throw error;
      }
      // A different one: the view was built again in the meantime.
      if (this.#collections.get(kind as CollectionKind<unknown>) === found) return found;
    }
  }

  /** The number of hosts that a rule, "racks/RACK rule NAME", has made of machines. */
  madeByRule(rule: string): number {
    return this.#rows.countBy('rule', rule);
  }

  /**
   * Rows of hosts after the id `after`, in order. `having` limits them to the value with the fewest
   * hosts, so some rows may lack the other values. So does `anyOf` to the hosts with one of these
   * values, if they are fewer; empty: it limits nothing.
   */
  *rows(
    after = '',
    having: ReadonlyMap<string, string> = new Map(),
    anyOf: readonly FieldValue[] = [],
  ): Generator<FleetRow> {
    const rows = this.#rows;
    const known = [...having].flatMap(([field, value]) =>
      isIndexed(field) ? [[field, value] as const] : [],
    );
    const fewest = this.#fewest(known);
    const count = fewest === undefined ? rows.size : rows.countBy(...fewest);
    const isFewer = anyOf.reduce((sum, each) => sum + rows.countBy(...each), 0) < count;
    const values = anyOf.length > 0 && isFewer ? anyOf : fewest && [fewest];
    if (values === undefined) {
      yield* rows.behind(after);
      return;
    }
    for (const hostId of rows.idsAmong(values, after)) {
      const row = rows.get(hostId);
      if (row !== undefined) yield row;
    }
  }

  /** The number of hosts with each value of a field, for values that occur. */
  countsBy(field: IndexedField): ReadonlyMap<string, number> {
    return this.#rows.countsBy(field);
  }

  counts(): FleetCounts {
    const byState = new Map(this.#rows.tally.byState);
    return { hosts: this.#rows.size, byState, unreadable: this.#rows.unreadable() };
  }

  /** At `revision`. It is updated later: a caller that keeps it copies what it needs. */
  get tally(): FleetTally {
    return this.#rows.tally;
  }

  /** Hosts whose record cannot be read. */
  get unreadableCount(): number {
    return this.#rows.unreadableCount;
  }

  /** The value that the fewest hosts have. */
  #fewest(having: readonly FieldValue[]) {
    let fewest: FieldValue | undefined;
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

  /**
   * (3) The watch starts at the first page's revision, and brings the changes that pages may lack.
   */
  async #build(): Promise<void> {
    const rows = new FleetRows();
    let from: StoreRevision | undefined;
    const { store, clock, log } = this.#deps;
    let checkedMs = clock.nowMs();
    // Other calls run in between.
    const pages = { limit: buildEntries, between: () => this.#pause(0) };
    for await (const page of listingsOf((each) => store.list(prefix, each), pages)) {
      from ??= page.before;
      for (const entry of page.entries) {
        if (isDirectlyBelow(prefix, entry.key)) rows.put(rowOf(entry, this.#decodeAnew));
      }
      if (clock.nowMs() < checkedMs + progressMs) continue;
      checkedMs = clock.nowMs();
      log.info({ hosts: rows.size }, 'the hosts are being read');
    }
    if (from === undefined) return;
    const before = this.#rows;
    this.#rows = rows;
    this.#revision = from;
    // No watch reports their changes up to this revision, so they are read again.
    this.#collections = new Map();
    this.#releaseWaiters();
    if (this.#observers.size > 0) this.#notifyOfDifferences(before, rows);
  }

  async #follow(): Promise<void> {
    const { store, log, retryDelayMs } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        // Watches the whole store, so that the view's revision is the store's.
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
    this.#releaseWaiters();
  }

  #changed(before: FleetRow | undefined, after: FleetRow | undefined): void {
    if (before?.revision === after?.revision) return;
    for (const observer of this.#observers) {
      try {
        observer(before, after);
      } catch (error) {
        const { hostId: host = '' } = after ?? before ?? {};
        this.#deps.log.warn({ host }, 'an observer for hosts failed', error);
      }
    }
  }

  /** (6) The new rows may contain changes that no watch reported. */
  #notifyOfDifferences(before: FleetRows, after: FleetRows): void {
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

  /** Most records of a fleet-wide read are not read again: they are not cached. */
  readonly #decodeAnew = (entry: Entry): wire.HostRecord =>
    this.#filled(entry, fromBinary(wire.HostRecordSchema, entry.value));

  /** Decoded once, and shared with the other readers. */
  readonly #decodeShared = (entry: Entry): wire.HostRecord =>
    this.#filled(entry, sharedRecordOf(this.#deps.store, wire.HostRecordSchema, entry));

  #filled({ key, revision }: Entry, record: wire.HostRecord): wire.HostRecord {
    const host = idOfKey(key);
    for (const observer of this.#recordObservers) {
      try {
        observer(host, revision, record);
      } catch (error) {
        this.#deps.log.warn({ host }, 'an observer for records failed', error);
      }
    }
    return record;
  }

  #releaseWaiters(): void {
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
