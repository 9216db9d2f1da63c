/**
 * Hosts removed by force that a rack's agent must still forget. The request goes into Welcome, is
 * pushed when the host is removed, and is repeated while the rack's record has the tombstones.
 */
import type { HostUid, RackId } from '@rackwright/messages';
import type { CrashPoint, Log, Random } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { FleetView } from '../../fleet-view/index.ts';
import { type Hosts, hostsFencedBy, takeTombstone } from '../../host/index.ts';

export interface ForgettingDependencies {
  readonly store: StateStore;
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'idsBy'>;
  readonly random: Random;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly hosts: Pick<Hosts, 'wake'>;
}

/** Pause before the request is repeated: the agent may need time to end the work on a host. */
const retryIntervalMs = 30_000;

export class ForgetRequests {
  readonly #deps: ForgettingDependencies;
  readonly #rackId: RackId;
  readonly #askedMs = new Map<HostUid, number>();

  constructor(deps: ForgettingDependencies, rackId: RackId) {
    this.#deps = deps;
    this.#rackId = rackId;
  }

  /** The present tombstones for which the agent is to be asked now. */
  due(tombstones: readonly HostUid[], nowMs: number): HostUid[] {
    for (const uid of this.#askedMs.keys()) {
      if (!tombstones.includes(uid)) this.#askedMs.delete(uid);
    }
    const due = tombstones.filter(
      (uid) => (this.#askedMs.get(uid) ?? 0) + retryIntervalMs <= nowMs,
    );
    for (const uid of due) this.#askedMs.set(uid, nowMs);
    return due;
  }

  /** The agent has confirmed: the fence is lifted, and hosts that waited for it go on. */
  async confirm(uid: HostUid): Promise<void> {
    const { fleetView, log, hosts } = this.#deps;
    if (!(await takeTombstone(this.#deps, this.#rackId, uid))) return;
    log.info({ rack: this.#rackId, uid }, 'the agent has forgotten a host removed by force');
    for (const hostId of await hostsFencedBy(fleetView, uid)) hosts.wake(hostId);
  }
}
