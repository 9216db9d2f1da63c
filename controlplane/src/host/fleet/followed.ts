/**
 * The fleet's and the racks' records as this replica saw them last, from a watch of the store.
 *
 * Must not: be used where a stale record would do harm. Code that orders destructive work reads the
 * rack itself, and agents learn of a freeze from the read for their lease.
 */
import { type RackId, store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import type { Entry, StateStore, StoreRevision } from '@rackwright/store';
import type { Follower, StoreFollower } from '../../following/index.ts';
import { readableRecordOf, readShared, sharedRecordOf } from '../../records/index.ts';

export const fleetKey = 'fleet.fleet';
const racksPrefix = 'racks';

/** The fleet's present record; undefined: nothing is set. */
export async function readFleet(store: StateStore): Promise<wire.FleetRecord | undefined> {
  return (await readShared(store, wire.FleetRecordSchema, fleetKey))?.record;
}

export interface FollowedDependencies {
  readonly store: StateStore;
  readonly following: StoreFollower;
  readonly log: Pick<Log, 'warn'>;
}

/** `before` is undefined for a new record; `after` for a deleted one. */
export interface FleetObserver {
  fleet(before: wire.FleetRecord | undefined, after: wire.FleetRecord | undefined): void;
  rack(
    rackId: RackId,
    before: wire.RackRecord | undefined,
    after: wire.RackRecord | undefined,
  ): void;
}

interface FollowedRecord<T> {
  readonly record: T | undefined;
  readonly revision: StoreRevision;
}

export class FleetFollower {
  readonly #deps: FollowedDependencies;
  readonly #observer: FleetObserver;
  readonly #racks = new Map<RackId, FollowedRecord<wire.RackRecord>>();
  readonly #stopping = new AbortController();
  #fleet: FollowedRecord<wire.FleetRecord> = { record: undefined, revision: 0 };

  constructor(deps: FollowedDependencies, observer: FleetObserver) {
    this.#deps = deps;
    this.#observer = observer;
  }

  /** Reads the present records, then follows the store. */
  async start(): Promise<void> {
    await Promise.all([this.#followFleet(), this.#followRacks()]);
  }

  #followFleet(): Promise<void> {
    const follower: Follower = {
      listed: ({ entries }) => entries.forEach((entry) => this.#foundFleet(entry)),
      changed: (change) => {
        if (change.kind === 'put') this.#foundFleet(change);
        else this.noteFleet(undefined, change.revision);
      },
    };
    return this.#deps.following.follow(fleetKey, follower, this.#stopping.signal);
  }

  #followRacks(): Promise<void> {
    const follower: Follower = {
      listed: ({ entries, before }) => {
        for (const entry of entries) this.#foundRack(entry);
        const there = new Set(entries.map(({ key }) => rackIdOfKey(key)));
        for (const rackId of this.#racks.keys()) {
          if (!there.has(rackId)) this.noteRack(rackId, undefined, before);
        }
      },
      changed: (change) => {
        const rackId = rackIdOfKey(change.key);
        if (change.kind === 'put') this.#foundRack(change);
        else if (rackId !== undefined) this.noteRack(rackId, undefined, change.revision);
      },
    };
    return this.#deps.following.follow(racksPrefix, follower, this.#stopping.signal);
  }

  stop(): void {
    this.#stopping.abort();
  }

  get fleet(): wire.FleetRecord | undefined {
    return this.#fleet.record;
  }

  rack(rackId: RackId): wire.RackRecord | undefined {
    return this.#racks.get(rackId)?.record;
  }

  *racks(): Iterable<readonly [rackId: RackId, record: wire.RackRecord]> {
    for (const [rackId, { record }] of this.#racks) if (record) yield [rackId, record];
  }

  /** Records a write of this replica, before the watch reports it. */
  noteFleet(record: wire.FleetRecord | undefined, revision: StoreRevision): void {
    if (revision <= this.#fleet.revision) return;
    const before = this.#fleet.record;
    this.#fleet = { record, revision };
    this.#observer.fleet(before, record);
  }

  noteRack(rackId: RackId, record: wire.RackRecord | undefined, revision: StoreRevision): void {
    const before = this.#racks.get(rackId);
    if (before !== undefined && revision <= before.revision) return;
    this.#racks.set(rackId, { record, revision });
    this.#observer.rack(rackId, before?.record, record);
  }

  /**
   * Throws for a record that cannot be decoded: it may contain a freeze, so it never counts as
   * absent.
   */
  #foundFleet(entry: Entry): void {
    const record = sharedRecordOf(this.#deps.store, wire.FleetRecordSchema, entry);
    this.noteFleet(record, entry.revision);
  }

  #foundRack(entry: Entry): void {
    const rackId = rackIdOfKey(entry.key);
    if (rackId === undefined) return;
    const record = readableRecordOf(this.#deps, wire.RackRecordSchema, entry);
    this.noteRack(rackId, record, entry.revision);
  }
}

/** Undefined: a record below a rack is not the rack. */
function rackIdOfKey(key: string): RackId | undefined {
  const rackId = key.slice(racksPrefix.length + 1);
  return rackId === '' || rackId.includes('.') ? undefined : rackId;
}
