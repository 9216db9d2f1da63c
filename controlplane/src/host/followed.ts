/**
 * The fleet's and the racks' records as this replica saw them last, kept by following the store.
 *
 * Must not: be asked where an older answer than the store's would do harm. Whoever orders
 * destructive work reads the rack itself, and agents learn of a freeze by what was read for their
 * lease.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/api';
import type { Clock, Log } from '@rackwright/platform';
import type { Revision, StateStore } from '@rackwright/store';

export const fleetKey = 'fleet.fleet';
const racksPrefix = 'racks';

export interface FollowedDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Pause before a watch that broke off starts again. */
  readonly retryDelayMs: number;
}

/** `before` is undefined for what was not known; `after` for what is gone. */
export interface FollowedListener {
  fleet(before: wire.FleetRecord | undefined, after: wire.FleetRecord | undefined): void;
  rack(
    rackId: string,
    before: wire.RackRecord | undefined,
    after: wire.RackRecord | undefined,
  ): void;
}

interface Seen<T> {
  readonly record: T | undefined;
  readonly revision: Revision;
}

export class Followed {
  readonly #deps: FollowedDependencies;
  readonly #listener: FollowedListener;
  readonly #racks = new Map<string, Seen<wire.RackRecord>>();
  readonly #stopping = new AbortController();
  #fleet: Seen<wire.FleetRecord> = { record: undefined, revision: 0 };

  constructor(deps: FollowedDependencies, listener: FollowedListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  /** Reads what there is, then follows the store. */
  async start(): Promise<void> {
    const prefixes = [fleetKey, racksPrefix] as const;
    const from = await Promise.all(prefixes.map((prefix) => this.#look(prefix)));
    prefixes.forEach((prefix, index) => void this.#follow(prefix, from[index] ?? 0));
  }

  stop(): void {
    this.#stopping.abort();
  }

  get fleet(): wire.FleetRecord | undefined {
    return this.#fleet.record;
  }

  rack(rackId: string): wire.RackRecord | undefined {
    return this.#racks.get(rackId)?.record;
  }

  *racks(): Iterable<readonly [rackId: string, record: wire.RackRecord]> {
    for (const [rackId, { record }] of this.#racks) if (record) yield [rackId, record];
  }

  /** Takes in what this replica has written itself, before the watch brings it. */
  noteFleet(record: wire.FleetRecord | undefined, revision: Revision): void {
    if (revision <= this.#fleet.revision) return;
    const before = this.#fleet.record;
    this.#fleet = { record, revision };
    this.#listener.fleet(before, record);
  }

  noteRack(rackId: string, record: wire.RackRecord | undefined, revision: Revision): void {
    const before = this.#racks.get(rackId);
    if (before !== undefined && revision <= before.revision) return;
    this.#racks.set(rackId, { record, revision });
    this.#listener.rack(rackId, before?.record, record);
  }

  async #look(prefix: string): Promise<Revision> {
    const { entries, before } = await this.#deps.store.list(prefix);
    for (const { key, value, revision } of entries) this.#note(key, value, revision);
    const there = new Set(entries.map(({ key }) => key));
    if (prefix === fleetKey) return before;
    for (const rackId of this.#racks.keys()) {
      if (!there.has(`${racksPrefix}.${rackId}`)) this.noteRack(rackId, undefined, before);
    }
    return before;
  }

  #note(key: string, value: Uint8Array | undefined, revision: Revision): void {
    if (key === fleetKey) {
      const record = value === undefined ? undefined : fromBinary(wire.FleetRecordSchema, value);
      this.noteFleet(record, revision);
      return;
    }
    const rackId = key.slice(racksPrefix.length + 1);
    // What lies below a rack is not the rack.
    if (rackId === '' || rackId.includes('.')) return;
    const record = value === undefined ? undefined : fromBinary(wire.RackRecordSchema, value);
    this.noteRack(rackId, record, revision);
  }

  /** For ever: a watch that breaks off or has gaps starts again with a look. */
  async #follow(prefix: string, from: Revision): Promise<void> {
    const { store, log, clock, retryDelayMs } = this.#deps;
    const { signal } = this.#stopping;
    try {
      for await (const change of store.watch(from, prefix, signal)) {
        if (change.kind === 'compacted') break;
        this.#note(change.key, change.kind === 'put' ? change.value : undefined, change.revision);
      }
    } catch (error) {
      log.warn({ error: String(error) }, `the watch over ${prefix} broke off; it starts again`);
    }
    if (signal.aborted) return;
    clock.after(retryDelayMs, () => {
      this.#look(prefix).then(
        (before) => this.#follow(prefix, before),
        () => this.#follow(prefix, from),
      );
    });
  }
}
