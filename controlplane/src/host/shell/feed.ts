/**
 * What is news of hosts to this replica: every host at the start and at each slow resync, then what
 * other replicas and rpc write. All of it comes by the fleet view, which decodes it once.
 *
 * Invariants:
 * 1. What this replica has decided on already is no news: its own writes come back by the watch.
 * 2. No host is looked at before it is known what racks and the fleet say about it.
 * 3. At the start those with a run come before the others.
 * 4. Whoever was not in a listing gives back the places that it held before that listing.
 * 5. A resync takes so much time for each host, so that its share of the processor does not grow
 *    with their number.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type HostId, store as wire } from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import type { Entry, Revision } from '@rackwright/store';
import type { Controller } from '../../loop/index.ts';
import { answered, idOfKey, listingsOf } from '../../records/index.ts';
import { type HostIndex } from '../fleet/host-index.ts';
import { activeRun } from '../pass/pass.ts';
import type { HostsDependencies } from './dependencies.ts';
import type { Limits } from './limits.ts';

/** Hosts that a resync reads at once. */
const resyncPageHosts = 100;
/** Time that a resync takes for each of them, at least: so it takes an hour for 90,000 hosts. */
const resyncMsPerHost = 40;

/** Why a host is passed over: it is time, or somebody else wrote it. */
export type PassReason = 'tick' | 'written';

export interface FeedParts {
  readonly index: HostIndex;
  readonly limits: Limits;
  readonly controller: Controller<string, PassReason>;
}

export class HostFeed {
  readonly #deps: HostsDependencies;
  readonly #parts: FeedParts;
  /** The newest revision of each host that this replica has decided on. */
  readonly #decided = new Map<string, Revision>();
  /** The newest one that it has heard of, while it is newer than that. */
  readonly #heard = new Map<string, Revision>();
  /** Hosts with a run, as they were read at the start; undefined: that is over. */
  #working: Set<string> | undefined = new Set();

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

  /** This replica has decided on the host as of this revision. */
  decided(hostId: HostId, revision: Revision): void {
    this.#decided.set(hostId, revision);
    if ((this.#heard.get(hostId) ?? 0) <= revision) this.#heard.delete(hostId);
  }

  /** Whether the host was written since this replica has decided on it. */
  isNews(hostId: HostId): boolean {
    return this.#heard.has(hostId);
  }

  /** There is no such host any more. */
  drop(hostId: HostId): void {
    this.#decided.delete(hostId);
    this.#heard.delete(hostId);
  }

  /** Each in its turn, those first that are being worked on. */
  #wakeAll(working: ReadonlySet<string>): void {
    for (const hostId of this.#parts.index.hostIds()) {
      this.#wake(hostId, working.has(hostId) ? 'soon' : 'later');
    }
  }

  #wake(hostId: HostId, lane: 'soon' | 'later'): void {
    this.#parts.controller.wake(hostId, this.isNews(hostId) ? 'written' : 'tick', lane);
  }

  /** (1) What we wrote ourselves has been decided on by its pass. */
  #read(hostId: HostId, revision: Revision, record: wire.HostRecord): void {
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
    const held = limits.held();
    const before = index.hostIds();
    const there = new Set<string>();
    const between = () => pause(clock, resyncPageHosts * resyncMsPerHost, signal);
    const pages = { limit: resyncPageHosts, between };
    for await (const { entries } of listingsOf(
      (page) => answered(store.list('hosts', page)),
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
    limits.afterListing(held);
  }
}

/** Undefined of one that cannot be decoded: the fleet view says so, and the others go on. */
function recordOf({ value }: Entry): wire.HostRecord | undefined {
  try {
    return fromBinary(wire.HostRecordSchema, value);
  } catch {
    return undefined;
  }
}
