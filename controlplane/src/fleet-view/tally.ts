/** The number of hosts of each sort, updated with every row: no count needs a scan. Pure. */
import type { HostState, RackName, RunKind } from '@rackwright/messages';
import type { HostRow } from './row.ts';

/** Counts of one rack. */
export interface RackTally {
  readonly byState: ReadonlyMap<HostState, number>;
  /** Hosts with any fault. */
  readonly faulty: number;
}

/** Counts of all hosts with a readable record. No map has an entry of 0. */
export interface FleetTally {
  readonly byState: ReadonlyMap<HostState, number>;
  /** By "racks/RACK". */
  readonly byRack: ReadonlyMap<RackName, RackTally>;
  /** By the type of a fault; a host counts once for each. */
  readonly byFault: ReadonlyMap<string, number>;
  /** Runs that hold a host, by kind. */
  readonly byRun: ReadonlyMap<RunKind, number>;
  /** Runs that wait, by `Waiting.reason`. */
  readonly byWait: ReadonlyMap<string, number>;
  readonly held: number;
}

interface RackCounts {
  readonly byState: Map<HostState, number>;
  faulty: number;
}

export class RowTally implements FleetTally {
  readonly byState = new Map<HostState, number>();
  readonly byRack = new Map<RackName, RackCounts>();
  readonly byFault = new Map<string, number>();
  readonly byRun = new Map<RunKind, number>();
  readonly byWait = new Map<string, number>();
  held = 0;

  /** `by` is 1 for an added row, −1 for a removed one. */
  count(row: HostRow, by: 1 | -1): void {
    shift(this.byState, row.state, by);
    this.#countInRack(row, by);
    for (const fault of new Set(row.faults)) shift(this.byFault, fault, by);
    // 0: none.
    if (row.runKind !== 0) shift(this.byRun, row.runKind, by);
    if (row.waiting !== '') shift(this.byWait, row.waiting, by);
    if (row.held) this.held += by;
  }

  #countInRack({ rack, state, faults }: HostRow, by: 1 | -1): void {
    const counts = this.byRack.get(rack) ?? { byState: new Map(), faulty: 0 };
    this.byRack.set(rack, counts);
    shift(counts.byState, state, by);
    if (faults.length > 0) counts.faulty += by;
    if (counts.byState.size === 0) this.byRack.delete(rack);
  }
}

function shift<K>(counts: Map<K, number>, key: K, by: 1 | -1): void {
  const left = (counts.get(key) ?? 0) + by;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
