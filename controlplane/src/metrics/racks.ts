/** Counts of racks, from a watch of their records. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  duplicateAgentOf,
  type RackFaultType,
  type RackId,
  store as wire,
} from '@rackwright/messages';
import type { Entry, StateStore } from '@rackwright/store';
import { type FollowedValues, followValues, type StoreFollower } from '../following/index.ts';
import { idOfKey, isDirectlyBelow, readableRecordOf } from '../records/index.ts';

/** Why a rack's work waits for a person. */
export const rackStops = ['frozen', 'restored', 'duplicateAgent'] as const;
export type RackStop = (typeof rackStops)[number];

/** A rack with an enrolled agent. */
export interface CountedRack {
  /** Expiry of its agent's certificate, seconds since 1970; undefined before its first renewal. */
  readonly certificateEndSeconds: number | undefined;
  readonly stops: readonly RackStop[];
  /** Types of its network's faults, each once. */
  readonly faults: readonly RackFaultType[];
}

const prefix = 'racks';

export class CountedRacks {
  readonly #store: StateStore;
  readonly #followed: FollowedValues;
  readonly #racks = new Map<RackId, CountedRack>();

  constructor(parts: { readonly store: StateStore; readonly following: StoreFollower }) {
    this.#store = parts.store;
    this.#followed = followValues(parts.following, prefix, (key, entry) => this.#note(key, entry));
  }

  /** By the rack's id. */
  get racks(): ReadonlyMap<RackId, CountedRack> {
    return this.#racks;
  }

  start(): Promise<void> {
    return this.#followed.start();
  }

  stop(): void {
    this.#followed.stop();
  }

  #note(key: string, entry: Entry | undefined): void {
    if (!isDirectlyBelow(prefix, key)) return;
    const rack = entry === undefined ? undefined : this.#countedOf(entry);
    if (rack === undefined) this.#racks.delete(idOfKey(key));
    else this.#racks.set(idOfKey(key), rack);
  }

  /** A record that cannot be read is reported by the code that works with it. */
  #countedOf(entry: Entry): CountedRack | undefined {
    const reader = { store: this.#store };
    const record = readableRecordOf(reader, wire.RackRecordSchema, entry);
    if (record === undefined || record.agentPublicKey.length === 0) return undefined;
    const status = record.rack?.status;
    const { certificateExpireTime: end, freeze, restoredStore, faults = [] } = status ?? {};
    const isStopped: Readonly<Record<RackStop, boolean>> = {
      frozen: freeze !== undefined,
      restored: restoredStore !== undefined,
      duplicateAgent: duplicateAgentOf(status) !== undefined,
    };
    return {
      certificateEndSeconds: end === undefined ? undefined : timestampMs(end) / 1_000,
      stops: rackStops.filter((stop) => isStopped[stop]),
      faults: [...new Set(faults.map(({ type }) => type))],
    };
  }
}
