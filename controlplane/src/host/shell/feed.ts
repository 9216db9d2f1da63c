/**
 * What is news of hosts to this replica: every host at the start and at each slow resync, then what
 * other replicas and rpc write.
 *
 * Invariants:
 * 1. What this replica has decided on already is no news: its own writes come back by the watch.
 * 2. No host is looked at before it is known what racks and the fleet say about it.
 * 3. At a look at all hosts those with a run come before the others.
 * 4. Whoever was not in a listing gives back the places that it held before that listing.
 */
import { store as wire } from '@rackwright/messages';
import type { Listing, Revision } from '@rackwright/store';
import type { Follower } from '../../following/index.ts';
import type { Controller } from '../../loop/index.ts';
import { idOfKey, sharedRecordOf } from '../../records/index.ts';
import { type HostIndex } from '../fleet/host-index.ts';
import { activeRun } from '../turn/turn.ts';
import type { HostsDependencies } from './dependencies.ts';
import type { Limits } from './limits.ts';
import type { HeldPlace } from './places.ts';

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
  /** The newest one that it has heard of, while it may be newer than that. */
  readonly #heard = new Map<string, Revision>();

  constructor(deps: HostsDependencies, parts: FeedParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /** Loads every host, then follows the store until the controller stops. */
  async start(): Promise<void> {
    const { limits, controller } = this.#parts;
    const known = limits.start();
    const once = (look: () => void) => void known.then(look, () => undefined);
    let isFirst = true;
    // A resync may list at the same time: each listing has its own.
    let held: readonly HeldPlace[] = [];
    const follower: Follower = {
      listing: () => {
        held = isFirst ? [] : limits.held();
      },
      listed: (listing) => {
        isFirst = false;
        const working = this.#takeIn(listing, held);
        once(() => this.#wakeAll(working));
      },
      changed: ({ key, revision }) => once(() => this.#changed(idOfKey(key), revision)),
    };
    const { signal } = controller;
    await Promise.all([known, this.#deps.following.follow('hosts', follower, signal)]);
    controller.resync(this.#deps.resyncIntervalMs, () => this.#resync());
  }

  /** This replica has decided on the host as of this revision. */
  decided(hostId: string, revision: Revision): void {
    this.#decided.set(hostId, revision);
    if ((this.#heard.get(hostId) ?? 0) <= revision) this.#heard.delete(hostId);
  }

  /** Whether the host was written since this replica has decided on it. */
  isNews(hostId: string): boolean {
    return this.#heard.has(hostId);
  }

  /** There is no such host any more. */
  drop(hostId: string): void {
    this.#decided.delete(hostId);
    this.#heard.delete(hostId);
  }

  /**
   * Indexes every host; whoever asks for a host by its uid afterwards finds it. Returns those that
   * are being worked on.
   */
  #takeIn({ entries }: Listing, held: readonly HeldPlace[]): ReadonlySet<string> {
    const working = new Set<string>();
    for (const entry of entries) {
      const record = sharedRecordOf(this.#deps.store, wire.HostRecordSchema, entry);
      const hostId = idOfKey(entry.key);
      this.#parts.index.note(hostId, record);
      this.#hear(hostId, entry.revision);
      const { status } = record.host ?? {};
      if (status !== undefined && activeRun(status) !== undefined) working.add(hostId);
    }
    this.#parts.limits.afterListing(held);
    return working;
  }

  /** Each in its turn, those first that are being worked on; who is gone is found to be. */
  #wakeAll(working: ReadonlySet<string>): void {
    const { index, controller } = this.#parts;
    for (const hostId of index.hostIds()) {
      const reason = this.isNews(hostId) ? 'written' : 'tick';
      controller.wake(hostId, reason, working.has(hostId) ? 'soon' : 'later');
    }
  }

  /** Somebody wrote the host; what we wrote ourselves has been decided on by its pass. */
  #changed(hostId: string, revision: Revision): void {
    this.#hear(hostId, revision);
    if (this.isNews(hostId)) this.#parts.controller.wake(hostId, 'written');
  }

  #hear(hostId: string, revision: Revision): void {
    const known = Math.max(this.#decided.get(hostId) ?? 0, this.#heard.get(hostId) ?? 0);
    if (revision > known) this.#heard.set(hostId, revision);
  }

  async #resync(): Promise<void> {
    const held = this.#parts.limits.held();
    const listing = await this.#deps.store.list('hosts');
    this.#wakeAll(this.#takeIn(listing, held));
  }
}
