/**
 * Which hosts this replica has to reconcile: every host at the start and at each slow resync, and
 * those that other replicas and rpc write. The fleet view reports all of them, and decodes each
 * record once.
 *
 * Invariants:
 * 1. A write of this replica needs no reconcile: its own writes come back from the watch.
 * 2. No host is reconciled before the records of racks and the fleet are known.
 * 3. At the start, hosts with a run go first.
 * 4. A host that is missing in a listing loses the slots that it had before that listing.
 * 5. A resync takes a fixed time for each host, so that its share of the processor does not grow
 *    with their number.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type HostId, store as wire } from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import type { Entry, StoreRevision } from '@rackwright/store';
import type { Controller } from '../../loop/index.ts';
import { idOfKey, listingsOf, orUnavailable } from '../../records/index.ts';
import { type HostIndex } from '../fleet/host-index.ts';
import { activeRun } from '../pass/pass.ts';
import type { HostsDependencies } from './dependencies.ts';
import type { Limits } from './limits.ts';

/** Hosts that a resync reads at once. */
const resyncPageHosts = 100;
/** The least time of a resync for each host: for 90,000 hosts it takes an hour. */
const resyncMsPerHost = 40;

/** Why a host is reconciled: it is due, or another writer changed it. */
export type PassReason = 'tick' | 'written';

export interface FeedParts {
  readonly index: HostIndex;
  readonly limits: Limits;
  readonly controller: Controller<HostId, PassReason>;
}

export class HostFeed {
  readonly #deps: HostsDependencies;
  readonly #parts: FeedParts;
  /** The newest revision of each host that this replica has decided on. */
  readonly #decided = new Map<HostId, StoreRevision>();
  /** The newest reported revision of each host, while it is newer than that. */
  readonly #heard = new Map<HostId, StoreRevision>();
  /** Hosts with a run at the start; undefined: the start is over. */
  #working: Set<HostId> | undefined = new Set();

  /** To be made before the view is built. */
  constructor(deps: HostsDependencies, parts: FeedParts) {
    this.#deps = deps;
    this.#parts = parts;
    deps.fleetView.onRecord((hostId, revision, record) => this.#read(hostId, revision, record));
  }

  /** Loads every host, then follows the store until the controller stops. */
  async start(): Promise<void> {
    const { limits, controller } = this.#parts;
    const { fleetView, resyncIntervalMs } = this.#deps;
    await Promise.all([limits.start(), fleetView.start()]);
    const working = this.#working ?? new Set();
    this.#working = undefined;
    this.#wakeAll(working);
    const gone = (hostId: HostId) => controller.wake(hostId, 'tick');
    fleetView.onChange((before, after) => {
      if (before !== undefined && after === undefined) gone(before.hostId);
    }, controller.signal);
    controller.resync(resyncIntervalMs, () => this.#resync());
  }

  /** This replica has decided on the host at this revision. */
  noteDecision(hostId: HostId, revision: StoreRevision): void {
    this.#decided.set(hostId, revision);
    if ((this.#heard.get(hostId) ?? 0) <= revision) this.#heard.delete(hostId);
  }

  /** Whether this replica has decided on the host at a later revision. */
  hasDecidedAfter(hostId: HostId, revision: StoreRevision): boolean {
    return (this.#decided.get(hostId) ?? 0) > revision;
  }

  /** Whether the host was written since this replica's last decision. */
  isNews(hostId: HostId): boolean {
    return this.#heard.has(hostId);
  }

  /** The host does not exist any more. */
  drop(hostId: HostId): void {
    this.#decided.delete(hostId);
    this.#heard.delete(hostId);
  }

  /** Wakes all hosts; those with work in progress first. */
  #wakeAll(working: ReadonlySet<HostId>): void {
    for (const hostId of this.#parts.index.hostIds()) {
      this.#wake(hostId, working.has(hostId) ? 'soon' : 'later');
    }
  }

  #wake(hostId: HostId, lane: 'soon' | 'later'): void {
    this.#parts.controller.wake(hostId, this.isNews(hostId) ? 'written' : 'tick', lane);
  }

  /** (1) The pass that wrote it has already decided. */
  #read(hostId: HostId, revision: StoreRevision, record: wire.HostRecord): void {
    const { controller, index } = this.#parts;
    const known = Math.max(this.#decided.get(hostId) ?? 0, this.#heard.get(hostId) ?? 0);
    if (controller.signal.aborted || revision <= known) return;
    this.#heard.set(hostId, revision);
    index.note(hostId, record, revision);
    if (this.#working === undefined) {
      controller.wake(hostId, 'written');
      return;
    }
    const { status } = record.host ?? {};
    if (status !== undefined && activeRun(status) !== undefined) this.#working.add(hostId);
  }

  /** (4), (5) */
  async #resync(): Promise<void> {
    const { store, clock } = this.#deps;
    const { limits, index, controller } = this.#parts;
    const { signal } = controller;
    const taken = limits.taken();
    const before = index.hostIds();
    const there = new Set<HostId>();
    const between = () => pause(clock, resyncPageHosts * resyncMsPerHost, signal);
    const pages = { limit: resyncPageHosts, between };
    for await (const { entries } of listingsOf(
      (page) => orUnavailable(store.list('hosts', page)),
      pages,
    )) {
      if (signal.aborted) return;
      for (const entry of entries) {
        const hostId = idOfKey(entry.key);
        there.add(hostId);
        const record = recordOf(entry);
        if (record === undefined) continue;
        this.#read(hostId, entry.revision, record);
        this.#wake(hostId, 'later');
      }
    }
    for (const hostId of before) if (!there.has(hostId)) this.#wake(hostId, 'later');
    limits.afterListing(taken);
  }
}

/**
 * Undefined for a record that cannot be decoded: the fleet view reports it, and the others go on.
 */
function recordOf({ value }: Entry): wire.HostRecord | undefined {
  try {
    return fromBinary(wire.HostRecordSchema, value);
  } catch {
    // The fleet view reports the record.
    return undefined;
  }
}
