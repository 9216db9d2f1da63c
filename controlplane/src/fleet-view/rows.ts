/**
 * Rows of hosts with their indexes and counts. Pure.
 *
 * Invariants:
 * 1. Each index names exactly the rows whose field has that value, in the order of their ids.
 * 2. An older version of a host than its row changes nothing.
 * 3. To put or take a row costs the same for any number of rows, except for moving ids within one
 *    list of an index.
 */
import type { HostId } from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import { IdsByValue } from './ids-by-value.ts';
import type { FleetRow, HostRow, UnreadableRow } from './row.ts';
import { mergedIds, SortedIds } from './sorted-ids.ts';
import { type FleetTally, RowTally } from './tally.ts';
import { macOfKey } from './traits.ts';

/** A row's values of each indexed field; texts in lower case where case does not matter. */
const indexed = {
  rack: ({ rack }: HostRow) => [rack],
  credential: ({ credential }: HostRow) => [credential],
  state: ({ state }: HostRow) => [String(state)],
  'bmc.address': ({ bmcAddress }: HostRow) => lower(bmcAddress === '' ? [] : [bmcAddress]),
  boot_macs: ({ bootMacs }: HostRow) => lower(bootMacs),
  serial: ({ serials }: HostRow) => lower(serials),
  fence: ({ fences }: HostRow) => fences,
  claim: ({ claim }: HostRow) => [claim],
  run: ({ runKind }: HostRow) => [String(runKind)],
  rule: ({ acceptedByRule }: HostRow) => (acceptedByRule === '' ? [] : [acceptedByRule]),
  trait: ({ traits }: HostRow) => traits,
  label: ({ labels }: HostRow) => Object.entries(labels).map(([key, value]) => `${key}=${value}`),
} as const;
/**
 * Short names of filter fields, and also `fence`, `rule` (that accepted the host), `trait` (a key
 * of `traits.ts`, without MACs), and `label`: "KEY=VALUE".
 */
export type IndexedField = keyof typeof indexed;
/** A field, and the value that a host has. */
export type FieldValue = readonly [field: IndexedField, value: string];
const fields = Object.keys(indexed) as readonly IndexedField[];

/** Whether this field is indexed. */
export function isIndexed(name: string): name is IndexedField {
  return Object.hasOwn(indexed, name);
}

function lower(texts: readonly string[]): readonly string[] {
  return texts.map((text) => text.toLowerCase());
}

export class FleetRows {
  readonly #rows = new Map<HostId, FleetRow>();
  readonly #indexes: Readonly<Record<IndexedField, IdsByValue>> = {
    rack: new IdsByValue(),
    credential: new IdsByValue(),
    state: new IdsByValue(),
    'bmc.address': new IdsByValue(),
    boot_macs: new IdsByValue(),
    serial: new IdsByValue(),
    fence: new IdsByValue(),
    claim: new IdsByValue(),
    run: new IdsByValue(),
    rule: new IdsByValue(),
    trait: new IdsByValue(),
    label: new IdsByValue(),
  };
  readonly #tally = new RowTally();
  readonly #ids = new SortedIds();
  readonly #unreadable = new SortedIds();

  get size(): number {
    return this.#rows.size;
  }

  get(hostId: HostId): FleetRow | undefined {
    return this.#rows.get(hostId);
  }

  /** Ids after `after` of the hosts whose field has this value, in order. */
  *idsBy(field: IndexedField, value: string, after = ''): Generator<string, void, undefined> {
    yield* this.#indexes[field].behind(value, after);
  }

  /** Ids after `after` of the hosts with one of these values, in order. */
  *idsAmong(values: readonly FieldValue[], after = ''): Generator<string, void, undefined> {
    yield* mergedIds(values.map(([field, value]) => this.idsBy(field, value, after)));
  }

  /** Ids of the hosts whose record has this trait, a key of `traits.ts`, in order. */
  idsByTrait(key: string): Iterable<string> {
    const mac = macOfKey(key);
    return mac === undefined ? this.idsBy('trait', key) : this.idsBy('boot_macs', mac);
  }

  /** The number of hosts with this value. */
  countBy(field: IndexedField, value: string): number {
    return this.#indexes[field].sizeOf(value);
  }

  /** The number of hosts with each value, for values that occur. */
  countsBy(field: IndexedField): ReadonlyMap<string, number> {
    return new Map(this.#indexes[field].sizes());
  }

  /** Rows after the id `after`, of readable and unreadable hosts, in the order of their ids. */
  *behind(after = ''): Generator<FleetRow, void, undefined> {
    for (const hostId of this.#ids.behind(after)) {
      const row = this.get(hostId);
      if (row !== undefined) yield row;
    }
  }

  /** The number of hosts of each sort. */
  get tally(): FleetTally {
    return this.#tally;
  }

  get unreadableCount(): number {
    return this.#unreadable.size;
  }

  unreadable(): readonly UnreadableRow[] {
    return [...this.#unreadable.behind('')].flatMap((hostId) => {
      const row = this.#rows.get(hostId);
      return row?.kind === 'unreadable' ? [row] : [];
    });
  }

  put(row: FleetRow): void {
    const { hostId, revision } = row;
    const before = this.#rows.get(hostId);
    if ((before?.revision ?? 0) >= revision) return;
    this.#rows.set(hostId, row);
    if (before === undefined) this.#ids.add(hostId);
    this.#move(hostId, before, row);
  }

  take(hostId: HostId, revision: StoreRevision): void {
    const before = this.#rows.get(hostId);
    if (before === undefined || before.revision >= revision) return;
    this.#move(hostId, before, undefined);
    this.#rows.delete(hostId);
    this.#ids.delete(hostId);
  }

  /** (3) Values that both rows share stay in place: long lists are not moved. */
  #move(hostId: HostId, before: FleetRow | undefined, after: FleetRow | undefined): void {
    if (before?.kind === 'unreadable') this.#unreadable.delete(hostId);
    if (after?.kind === 'unreadable') this.#unreadable.add(hostId);
    const was = before?.kind === 'host' ? before : undefined;
    const is = after?.kind === 'host' ? after : undefined;
    for (const field of fields) {
      const old = was === undefined ? none : indexed[field](was);
      const now = is === undefined ? none : indexed[field](is);
      if (areSame(old, now)) continue;
      for (const value of old) this.#indexes[field].delete(value, hostId);
      for (const value of now) this.#indexes[field].add(value, hostId);
    }
    if (was !== undefined) this.#tally.count(was, -1);
    if (is !== undefined) this.#tally.count(is, 1);
  }
}

const none: readonly string[] = [];

function areSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, at) => value === other[at]);
}
