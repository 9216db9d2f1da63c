/**
 * Which hosts there are, by uid and by rack, as this replica has read them. Only an index: the
 * store can rebuild it, and whoever needs the record reads it.
 */
import type { store as wire } from '@rackwright/api';

export class HostIndex {
  readonly #hostIdOfUid = new Map<string, string>();
  readonly #uidOf = new Map<string, string>();
  readonly #rackOf = new Map<string, string>();
  readonly #bootKeys = new Map<string, string>();
  readonly #bootListeners: ((rackId: string) => void)[] = [];

  /** Calls `listener` with a rack whose boot snapshot may have changed. */
  onBootChange(listener: (rackId: string) => void): void {
    this.#bootListeners.push(listener);
  }

  hostIds(): string[] {
    return [...this.#rackOf.keys()];
  }

  rackOf(hostId: string): string | undefined {
    return this.#rackOf.get(hostId);
  }

  hostIdsOfRack(rackId: string): string[] {
    return [...this.#rackOf].filter(([, rack]) => rack === rackId).map(([hostId]) => hostId);
  }

  /** The host with this uid, if it is one of the rack's. */
  hostIdOfUid(uid: string, rackId: string): string | undefined {
    const hostId = this.#hostIdOfUid.get(uid);
    return hostId !== undefined && this.#rackOf.get(hostId) === rackId ? hostId : undefined;
  }

  /** Takes in a host as it was read. */
  note(hostId: string, record: wire.HostRecord): void {
    const { host } = record;
    const rackId = rackIdOf(record);
    this.#noteUid(hostId, host?.uid ?? '');
    this.#rackOf.set(hostId, rackId);
    const bootKey = `${host?.uid} ${host?.spec?.bootMacs.join(' ')}`;
    if (this.#bootKeys.get(hostId) === bootKey) return;
    this.#bootKeys.set(hostId, bootKey);
    this.#bootChanged(rackId);
  }

  /** There is no such host (any more). */
  drop(hostId: string): void {
    const rackId = this.#rackOf.get(hostId);
    this.#rackOf.delete(hostId);
    if (this.#bootKeys.delete(hostId) && rackId !== undefined) this.#bootChanged(rackId);
    this.#hostIdOfUid.delete(this.#uidOf.get(hostId) ?? '');
    this.#uidOf.delete(hostId);
  }

  /** A host made anew under its name is another one: what is said of the old one is not its. */
  #noteUid(hostId: string, uid: string): void {
    const before = this.#uidOf.get(hostId);
    if (before === uid) return;
    if (before !== undefined) this.#hostIdOfUid.delete(before);
    this.#uidOf.set(hostId, uid);
    this.#hostIdOfUid.set(uid, hostId);
  }

  #bootChanged(rackId: string): void {
    for (const listener of this.#bootListeners) listener(rackId);
  }
}

/** "r1" of a host in "racks/r1". */
export function rackIdOf(record: wire.HostRecord): string {
  return (record.host?.spec?.rack ?? '').replace(/^racks\//, '');
}
