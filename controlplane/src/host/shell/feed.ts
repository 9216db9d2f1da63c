/**
 * What is news of hosts to this replica: every host at the start and at each slow resync, then what
 * other replicas and rpc write.
 *
 * Invariants:
 * 1. What this replica has decided on already is no news: its own writes come back by the watch.
 * 2. No host is looked at before it is known what racks and the fleet say about it.
 * 3. A look at all hosts is bounded work: so many at once, and hosts with a run before the others.
 * 4. Whoever was not in a listing gives back the places that it held before that listing.
 */
import { store as wire } from '@rackwright/messages';
import type { Listing } from '@rackwright/store';
import type { Follower } from '../../following/index.ts';
import { Looks, type OneByOne, resyncLater } from '../../loop/index.ts';
import { idOfKey, sharedRecordOf } from '../../records/index.ts';
import { type HostIndex } from '../fleet/host-index.ts';
import { activeRun } from '../turn/turn.ts';
import type { HostEvent } from '../turn/types.ts';
import type { HostsDependencies } from './dependencies.ts';
import type { Limits } from './limits.ts';
import type { HeldPlace } from './places.ts';

export interface FeedParts {
  readonly index: HostIndex;
  readonly limits: Limits;
  readonly turns: OneByOne;
  /** Looks at the host again; resolves once that is over, whatever came of it. */
  readonly look: (hostId: string, event: HostEvent) => Promise<void>;
}

export class HostFeed {
  readonly #deps: HostsDependencies;
  readonly #parts: FeedParts;
  /** The newest revision of each host that this replica has decided on. */
  readonly #decided = new Map<string, number>();
  /** Of the hosts that wait for a look, what the last listing said. */
  #listed: ReadonlyMap<string, number> = new Map();
  #working: ReadonlySet<string> = new Set();
  #looks: Looks | undefined;

  constructor(deps: HostsDependencies, parts: FeedParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /** Loads every host, then follows the store until `signal` aborts. */
  async start(signal: AbortSignal): Promise<void> {
    const { limits } = this.#parts;
    const look = (hostId: string) => this.#lookAt(hostId, this.#listed.get(hostId) ?? 0);
    this.#looks = new Looks(this.#deps.clock, look, signal);
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
        this.#takeIn(listing, held);
        once(() => this.#lookAtAll(listing));
      },
      changed: ({ key, revision }) => once(() => this.#changed(idOfKey(key), revision)),
    };
    await Promise.all([known, this.#deps.following.follow('hosts', follower, signal)]);
    resyncLater(this.#deps, () => this.#resync(), signal);
  }

  /** This replica has decided on the host as of this revision. */
  decided(hostId: string, revision: number): void {
    this.#decided.set(hostId, revision);
  }

  /** There is no such host any more. */
  drop(hostId: string): void {
    this.#decided.delete(hostId);
  }

  /** Indexes every host; whoever asks for a host by its uid afterwards finds it. */
  #takeIn({ entries }: Listing, held: readonly HeldPlace[]): void {
    const working = new Set<string>();
    for (const entry of entries) {
      const record = sharedRecordOf(this.#deps.store, wire.HostRecordSchema, entry);
      const hostId = idOfKey(entry.key);
      this.#parts.index.note(hostId, record);
      const { status } = record.host ?? {};
      if (status !== undefined && activeRun(status) !== undefined) working.add(hostId);
    }
    this.#working = working;
    this.#parts.limits.afterListing(held);
  }

  /** Each in its turn, those first that are being worked on. */
  #lookAtAll({ entries }: Listing): void {
    const listed = new Map(entries.map(({ key, revision }) => [idOfKey(key), revision]));
    this.#listed = listed;
    const all = new Set([...this.#parts.index.hostIds(), ...listed.keys()]);
    this.#looks?.add(all, (hostId) => this.#working.has(hostId));
  }

  /** Somebody wrote the host; what we wrote ourselves has been decided on already. */
  #changed(hostId: string, revision: number): void {
    void this.#parts.turns.take(hostId, async () => {
      if (this.#isNews(hostId, revision)) void this.#lookAt(hostId, revision);
    });
  }

  #isNews(hostId: string, revision: number): boolean {
    return (this.#decided.get(hostId) ?? 0) < revision;
  }

  #lookAt(hostId: string, revision: number): Promise<void> {
    return this.#parts.look(hostId, { kind: this.#isNews(hostId, revision) ? 'written' : 'tick' });
  }

  async #resync(): Promise<void> {
    const held = this.#parts.limits.held();
    const listing = await this.#deps.store.list('hosts');
    this.#takeIn(listing, held);
    this.#lookAtAll(listing);
  }
}
