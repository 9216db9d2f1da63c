/**
 * All data for a decision about a pool, from the present store.
 *
 * Invariants:
 * 1. The fleet view finds the hosts that a pool may be concerned with; each is then read. A host
 *    that was written before the request for the snapshot is found by its new values.
 * 2. The number of reads grows with the hosts that the pool selects or holds, never with all hosts.
 */
import {
  type HostId,
  type HostUid,
  type ImageRegistry,
  type Pool,
  type RackName,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import type { FleetView } from '../../fleet-view/index.ts';
import { agentAway, type Brake, destructionBrake, fleetKey } from '../../host/index.ts';
import { idOf, orUnavailable, readableRecordOf, readShared } from '../../records/index.ts';
import type { Policy } from '../../steps/index.ts';
import type { OtherPool } from '../facts/members.ts';
import { isSelected, type SeenHost, seenHost } from '../facts/seen.ts';
import type { KeptHost } from './slot-run.ts';

export interface PoolSnapshot {
  /** The hosts that the pool selects or holds, in the order of their keys. */
  readonly hosts: readonly SeenHost[];
  /** The hosts' own records, by uid. */
  readonly kept: ReadonlyMap<HostUid, KeptHost>;
  /** Other pools that are not in deletion. */
  readonly others: readonly OtherPool[];
  /** The fleet's policy for webhooks. */
  readonly policy: Policy;
  /** The fleet's settings for registries. */
  readonly registries: readonly ImageRegistry[];
}

export interface SnapshotDependencies {
  readonly store: StateStore;
  readonly fleetView: Pick<FleetView, 'candidates' | 'caughtUp' | 'idsBy'>;
}

/** Creates the snapshot of one pool. Throws `unavailable`. */
export type SnapshotOf = (record: wire.PoolRecord) => Promise<PoolSnapshot>;

/** Hosts that are read at once. */
const readsAtOnce = 64;

/** Reads it for one pool. Throws `unavailable`. */
export async function readSnapshot(
  deps: SnapshotDependencies,
  record: wire.PoolRecord,
  nowMs: number,
): Promise<PoolSnapshot> {
  return await (await readSnapshots(deps, nowMs))(record);
}

/** Reads the data that all pools share once. Throws `unavailable`. */
export async function readSnapshots(
  deps: SnapshotDependencies,
  nowMs: number,
): Promise<SnapshotOf> {
  const { store, fleetView } = deps;
  const [pools, fleet] = await Promise.all([
    orUnavailable(store.list('pools')),
    readShared(store, wire.FleetRecordSchema, fleetKey),
    fleetView.caughtUp(),
  ]);
  const staying = pools.entries
    .flatMap((entry) => readableRecordOf({ store }, wire.PoolRecordSchema, entry) ?? [])
    .filter(({ deletion }) => deletion === undefined)
    .map(({ pool }) => ({ name: pool?.name ?? '', spec: pool?.spec }));
  const { spec } = fleet?.record.fleet ?? {};
  const shared = { policy: spec?.templates, registries: spec?.registries ?? [] };
  return async (record) => {
    const others = staying.filter(({ name }) => name !== record.pool?.name);
    return { ...(await readHosts(deps, record, fleet?.record, nowMs)), ...shared, others };
  };
}

async function readHosts(
  { store, fleetView }: SnapshotDependencies,
  record: wire.PoolRecord,
  fleet: wire.FleetRecord | undefined,
  nowMs: number,
): Promise<Pick<PoolSnapshot, 'hosts' | 'kept'>> {
  const brakeOf = brakesOf(store, fleet, nowMs);
  const recorded = recordedHosts(record);
  const ids = new Set<HostId>([...recorded, ...fleetView.idsBy('claim', record.pool?.name ?? '')]);
  for (const id of selectedBy(fleetView, record.pool)) ids.add(id);
  const kept = new Map<HostUid, KeptHost>();
  const hosts: SeenHost[] = [];
  const read = async (id: HostId) => {
    const found = await readShared(store, wire.HostRecordSchema, storeKey('hosts', id));
    if (found === undefined) return undefined;
    return { found, brake: await brakeOf(found.record.host?.spec?.rack ?? '') };
  };
  const sorted = [...ids].toSorted((a, b) => (a < b ? -1 : 1));
  for (let at = 0; at < sorted.length; at += readsAtOnce) {
    const some = sorted.slice(at, at + readsAtOnce).map((id) => read(id));
    for (const each of await Promise.all(some)) {
      const host = each && seenHost(each.found.record, each.brake);
      if (each === undefined || host === undefined) continue;
      if (!isOf(record, recorded, host)) continue;
      hosts.push(host);
      kept.set(host.uid, each.found);
    }
  }
  return { hosts, kept };
}

function selectedBy(
  fleetView: SnapshotDependencies['fleetView'],
  pool: Pool | undefined,
): Iterable<HostId> {
  const selector = pool?.spec?.hosts;
  return selector === undefined ? [] : fleetView.candidates(selector);
}

/** Ids of hosts that the pool's record names. */
function recordedHosts({ members, failures, pool }: wire.PoolRecord): ReadonlySet<HostId> {
  const named = [...members, ...failures, ...(pool?.status?.slots ?? [])];
  return new Set(named.map(({ host }) => idOf(host)));
}

function isOf({ pool }: wire.PoolRecord, recorded: ReadonlySet<HostId>, host: SeenHost): boolean {
  if (recorded.has(idOf(host.name)) || host.claimedBy === pool?.name) return true;
  return isSelected(pool?.spec?.hosts, host);
}

/** What keeps work in a rack from beginning now, by the rack's name. */
function brakesOf(
  store: StateStore,
  fleet: wire.FleetRecord | undefined,
  nowMs: number,
): (rack: RackName) => Promise<Brake | undefined> {
  const known = new Map<RackName, Promise<Brake | undefined>>();
  const read = async (rack: RackName) => {
    const key = storeKey('racks', idOf(rack));
    const found = rack === '' ? undefined : await readShared(store, wire.RackRecordSchema, key);
    const brake = destructionBrake(found?.record, fleet);
    return brake ?? (found === undefined ? undefined : agentAway(found.record, nowMs));
  };
  return (rack) => {
    const brake = known.get(rack) ?? read(rack);
    known.set(rack, brake);
    return brake;
  };
}
