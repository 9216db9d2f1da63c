/**
 * The hosts that a watch has sent, and which of them may have other computed fields since. A look
 * at all of them, as often as such fields are compared, would cost more than all changes do.
 */
import type { HostId, RackId } from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import type { ServedObserver } from '../index.ts';

/** The last sent state of a host. */
export interface SentHost {
  readonly revision: StoreRevision;
  readonly rackId: RackId;
  /** Its computed fields. */
  readonly served: string;
}

/** See the header. */
export class SentHosts implements ServedObserver {
  readonly #sent = new Map<HostId, SentHost>();
  readonly #byRack = new Map<RackId, Set<HostId>>();
  #changedHosts = new Set<HostId>();
  #changedRacks = new Set<RackId>();

  get(hostId: HostId): SentHost | undefined {
    return this.#sent.get(hostId);
  }

  set(hostId: HostId, sent: SentHost): void {
    if (this.#sent.get(hostId)?.rackId !== sent.rackId) this.delete(hostId);
    this.#sent.set(hostId, sent);
    const ofRack = this.#byRack.get(sent.rackId);
    if (ofRack === undefined) this.#byRack.set(sent.rackId, new Set([hostId]));
    else ofRack.add(hostId);
  }

  /** Whether it was sent. */
  delete(hostId: HostId): boolean {
    const sent = this.#sent.get(hostId);
    if (sent === undefined) return false;
    const ofRack = this.#byRack.get(sent.rackId);
    ofRack?.delete(hostId);
    if (ofRack?.size === 0) this.#byRack.delete(sent.rackId);
    return this.#sent.delete(hostId);
  }

  /** A host that is sent later is sent with its present fields. */
  progressChanged(hostId: HostId): void {
    if (this.#sent.has(hostId)) this.#changedHosts.add(hostId);
  }

  agentChanged(rackId: RackId): void {
    if (this.#byRack.has(rackId)) this.#changedRacks.add(rackId);
  }

  /** Sent hosts that may have changed since the last call. */
  *takeChanged(): Generator<HostId, void, undefined> {
    const [hosts, racks] = [this.#changedHosts, this.#changedRacks];
    this.#changedHosts = new Set();
    this.#changedRacks = new Set();
    yield* hosts;
    for (const rackId of racks) yield* [...(this.#byRack.get(rackId) ?? [])];
  }
}
