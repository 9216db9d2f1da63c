/**
 * The existing hosts, by uid and by rack, as this replica has read them. Only an index: it can be
 * rebuilt from the store, and code that needs the record reads it.
 */
import {
  type agent,
  type BmcEndpoint,
  type BmcIdentity,
  type HostId,
  type HostName,
  type HostUid,
  type RackId,
  type store as wire,
} from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import { idOf, sameMessage } from '../../records/index.ts';
import { bootsOverNetwork } from '../deployment/deployment.ts';
import { bootProfileOf } from './boot-profile.ts';

/** The data that power sync needs of a host. */
export interface IndexedHost {
  readonly hostId: HostId;
  readonly uid: HostUid;
  readonly name: HostName;
  /**
   * Undefined while the host is being forgotten, and while its owner is not proved. Where the BMC
   * was changed during an order for the runner, it is that of the spec: only a BMC shows that a
   * runner that is not connected has ended with its host, and it counts only with the identity that
   * was proved.
   */
  readonly bmc: BmcEndpoint | undefined;
  readonly identity: BmcIdentity | undefined;
  /** From the last observation. */
  readonly poweredOn: boolean | undefined;
}

export class HostIndex {
  readonly #hostIdOfUid = new Map<HostUid, HostId>();
  readonly #uidOf = new Map<HostId, HostUid>();
  readonly #rackOf = new Map<HostId, RackId>();
  readonly #idsOfRack = new Map<RackId, Set<HostId>>();
  readonly #bootKeys = new Map<HostId, string>();
  readonly #bootObservers: ((rackId: RackId) => void)[] = [];
  readonly #powerTargets = new Map<HostId, IndexedHost>();
  /** The last noted revision of each host. */
  readonly #noted = new Map<HostId, StoreRevision>();
  readonly #powerObservers: ((rackId: RackId) => void)[] = [];

  /** Calls `observer` with a rack whose boot snapshot may have changed. */
  onBootChange(observer: (rackId: RackId) => void): void {
    this.#bootObservers.push(observer);
  }

  /** Calls `observer` with a rack whose list of polled hosts may have changed. */
  onPowerTargetsChange(observer: (rackId: RackId) => void): void {
    this.#powerObservers.push(observer);
  }

  powerTargetsOfRack(rackId: RackId): IndexedHost[] {
    return this.hostIdsOfRack(rackId).flatMap((hostId) => this.#powerTargets.get(hostId) ?? []);
  }

  hostIds(): HostId[] {
    return [...this.#rackOf.keys()];
  }

  rackOf(hostId: HostId): RackId | undefined {
    return this.#rackOf.get(hostId);
  }

  uidOf(hostId: HostId): HostUid | undefined {
    return this.#uidOf.get(hostId);
  }

  hostIdsOfRack(rackId: RackId): HostId[] {
    return [...(this.#idsOfRack.get(rackId) ?? [])];
  }

  /** The host with this uid, if it is one of the rack's. */
  hostIdOfUid(uid: HostUid, rackId: RackId): HostId | undefined {
    const hostId = this.#hostIdOfUid.get(uid);
    return hostId !== undefined && this.#rackOf.get(hostId) === rackId ? hostId : undefined;
  }

  /** The host with this uid, wherever it is. */
  hostIdOf(uid: HostUid): HostId | undefined {
    return this.#hostIdOfUid.get(uid);
  }

  /** Notes a host that was read; a repeated call costs only a comparison. */
  note(hostId: HostId, record: wire.HostRecord, revision: StoreRevision): void {
    if (this.#noted.get(hostId) === revision) return;
    this.#noted.set(hostId, revision);
    const { host } = record;
    const rackId = rackIdOf(record);
    this.#noteUid(hostId, host?.uid ?? '');
    this.#noteRack(hostId, rackId);
    this.#notePowerTargets(hostId, rackId, record);
    // The number of a deploying run is unique, so no two deployments give the same text.
    const netboot = bootsOverNetwork(record) ? `${record.deployedRun} ${host?.status?.image}` : '';
    const boots = [host?.spec?.bootMacs, netboot, bootProfileOf(host)];
    const bootKey = JSON.stringify([host?.uid, rackId, ...boots]);
    if (this.#bootKeys.get(hostId) === bootKey) return;
    this.#bootKeys.set(hostId, bootKey);
    this.#bootChanged(rackId);
  }

  /** The host does not exist (any more). */
  drop(hostId: HostId): void {
    this.#noted.delete(hostId);
    const rackId = this.#rackOf.get(hostId);
    this.#noteRack(hostId, undefined);
    if (this.#powerTargets.delete(hostId) && rackId !== undefined)
      this.#powerTargetsChanged(rackId);
    if (this.#bootKeys.delete(hostId) && rackId !== undefined) this.#bootChanged(rackId);
    this.#hostIdOfUid.delete(this.#uidOf.get(hostId) ?? '');
    this.#uidOf.delete(hostId);
  }

  #noteRack(hostId: HostId, rackId: RackId | undefined): void {
    const before = this.#rackOf.get(hostId);
    if (before === rackId) return;
    if (before !== undefined) {
      const left = this.#idsOfRack.get(before);
      left?.delete(hostId);
      if (left?.size === 0) this.#idsOfRack.delete(before);
    }
    if (rackId === undefined) {
      this.#rackOf.delete(hostId);
      return;
    }
    this.#rackOf.set(hostId, rackId);
    const ids = this.#idsOfRack.get(rackId) ?? new Set();
    this.#idsOfRack.set(rackId, ids.add(hostId));
  }

  /**
   * A new host under the same name is a different one: statements about the old one do not apply.
   */
  #noteUid(hostId: HostId, uid: HostUid): void {
    const before = this.#uidOf.get(hostId);
    if (before === uid) return;
    if (before !== undefined) this.#hostIdOfUid.delete(before);
    this.#uidOf.set(hostId, uid);
    this.#hostIdOfUid.set(uid, hostId);
  }

  #notePowerTargets(hostId: HostId, rackId: RackId, record: wire.HostRecord) {
    const before = this.#powerTargets.get(hostId);
    const { host } = record;
    const identity = host?.status?.bmcIdentity;
    const next: IndexedHost = {
      hostId,
      uid: host?.uid ?? '',
      name: host?.name ?? '',
      bmc: polledBmc(record),
      identity,
      poweredOn: host?.status?.poweredOn,
    };
    this.#powerTargets.set(hostId, next);
    const same = before?.uid === next.uid && sameBmc(before.bmc, next.bmc);
    if (!same || !sameIdentity(before?.identity, identity)) this.#powerTargetsChanged(rackId);
  }

  #powerTargetsChanged(rackId: RackId): void {
    for (const observer of this.#powerObservers) observer(rackId);
  }

  #bootChanged(rackId: RackId): void {
    for (const observer of this.#bootObservers) observer(rackId);
  }
}

/** See `IndexedHost.bmc`. */
function polledBmc({
  host,
  forgetting,
  verifiedBmc,
  operation,
}: wire.HostRecord): BmcEndpoint | undefined {
  if (forgetting || host?.status?.bmcIdentity === undefined) return undefined;
  const { bmc } = host.spec ?? {};
  const isPolled = isForRunner(operation?.operation) || sameBmc(bmc, verifiedBmc);
  return isPolled ? bmc : undefined;
}

/** Steps that the agent executes itself are ordered alike, but for no boot of a runner. */
function isForRunner(operation: agent.Operation | undefined): boolean {
  const kind = operation?.kind;
  switch (kind?.case) {
    case 'inspect':
    case 'runStep':
      return kind.value.bootOperationId !== '';
    default:
      return false;
  }
}

function sameBmc(a: BmcEndpoint | undefined, b: BmcEndpoint | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return sameMessage(a, b);
}

function sameIdentity(a: BmcIdentity | undefined, b: BmcIdentity | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return sameMessage(a, b);
}

/** "r1" of a host in "racks/r1". */
export function rackIdOf(record: wire.HostRecord): RackId {
  return idOf(record.host?.spec?.rack);
}
