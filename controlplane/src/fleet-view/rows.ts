/**
 * Rows of hosts with their indexes and counts. Pure.
 *
 * Invariants:
 * 1. Each index names exactly the rows whose field has that value, in the order of their ids.
 * 2. Of a host, what is older than its row changes nothing.
 * 3. To put or take a row costs the same however many rows there are, but for moving ids within
 *    one list of an index.
 */
import type { Revision } from '@rackwright/store';
import type { FleetRow, HostRow, UnreadableRow } from './row.ts';
import { SortedIds } from './sorted-ids.ts';
import { type FleetTally, RowTally } from './tally.ts';

/** Fields by which rows are found. */
const indexed = ['rack', 'credential'] as const;
export type IndexedField = (typeof indexed)[number];

export class FleetRows {
  readonly #rows = new Map<string, FleetRow>();
  readonly #indexes: Readonly<Record<IndexedField, Map<string, SortedIds>>> = {
    rack: new Map(),
    credential: new Map(),
  };
  readonly #tally = new RowTally();
  readonly #ids = new SortedIds();
  readonly #unreadable = new SortedIds();

  get size(): number {
    return this.#rows.size;
  }

  get(hostId: string): FleetRow | undefined {
    return this.#rows.get(hostId);
  }

  /** Ids behind `after` of the hosts whose field has this value, in order. */
  *idsBy(field: IndexedField, value: string, after = ''): Generator<string, void, undefined> {
    yield* this.#indexes[field].get(value)?.behind(after) ?? [];
  }

  /** Rows behind the id `after` in the order of their ids, of whatever kind. */
  *behind(after = ''): Generator<FleetRow, void, undefined> {
    for (const hostId of this.#ids.behind(after)) {
      const row = this.#rows.get(hostId);
      if (row !== undefined) yield row;
    }
  }

  /** How many hosts there are of each sort. */
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
    if (before !== undefined) this.#leave(before);
    this.#rows.set(hostId, row);
    if (before === undefined) this.#ids.add(hostId);
    if (row.kind === 'unreadable') {
      this.#unreadable.add(hostId);
      return;
    }
    for (const field of indexed) this.#listIn(field, row[field]).add(hostId);
    this.#tally.count(row, 1);
  }

  take(hostId: string, revision: Revision): void {
    const before = this.#rows.get(hostId);
    if (before === undefined || before.revision >= revision) return;
    this.#leave(before);
    this.#rows.delete(hostId);
    this.#ids.delete(hostId);
  }

  #leave(row: FleetRow): void {
    if (row.kind === 'unreadable') {
      this.#unreadable.delete(row.hostId);
      return;
    }
    for (const field of indexed) this.#leaveIndex(field, row);
    this.#tally.count(row, -1);
  }

  #leaveIndex(field: IndexedField, row: HostRow): void {
    const ids = this.#indexes[field].get(row[field]);
    ids?.delete(row.hostId);
    if (ids?.size === 0) this.#indexes[field].delete(row[field]);
  }

  #listIn(field: IndexedField, value: string): SortedIds {
    const known = this.#indexes[field].get(value) ?? new SortedIds();
    this.#indexes[field].set(value, known);
    return known;
  }
}
