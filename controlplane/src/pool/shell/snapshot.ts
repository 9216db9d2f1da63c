/** Everything that a decision about a pool is made of, as it stands in the store now. */
import { type ImageRegistry, store as wire } from '@rackwright/messages';
import type { Entry, StateStore } from '@rackwright/store';
import { agentAway, fleetKey, whyNothingDestructive } from '../../host/index.ts';
import { answered, readShared, sharedRecordOf } from '../../records/index.ts';
import type { Policy } from '../../steps/index.ts';
import type { OtherPool } from '../facts/members.ts';
import { type SeenHost, seenHost } from '../facts/seen.ts';
import type { KeptHost } from './slot-run.ts';

export interface PoolSnapshot {
  readonly hosts: readonly SeenHost[];
  /** The hosts' own records, by uid. */
  readonly kept: ReadonlyMap<string, KeptHost>;
  /** Other pools that are not to go. */
  readonly others: readonly OtherPool[];
  /** What webhooks the fleet allows. */
  readonly policy: Policy;
  /** How the fleet's registries are asked. */
  readonly registries: readonly ImageRegistry[];
}

/** Reads it for one pool. Throws `unavailable`. */
export async function readSnapshot(
  store: StateStore,
  poolId: string,
  nowMs: number,
): Promise<PoolSnapshot> {
  return (await readSnapshots(store, nowMs))(poolId);
}

/** Reads it once for all pools: what is given makes each one's of it. Throws `unavailable`. */
export async function readSnapshots(
  store: StateStore,
  nowMs: number,
): Promise<(poolId: string) => PoolSnapshot> {
  const [listed, racks, pools, fleet] = await Promise.all([
    answered(store.list('hosts')),
    answered(store.list('racks')),
    answered(store.list('pools')),
    readShared(store, wire.FleetRecordSchema, fleetKey),
  ]);
  const brakes = brakesOf(store, racks.entries, fleet?.record, nowMs);
  const kept = new Map<string, KeptHost>();
  const hosts: SeenHost[] = [];
  for (const entry of listed.entries) {
    const record = sharedRecordOf(store, wire.HostRecordSchema, entry);
    const host = seenHost(record, brakes(record.host?.spec?.rack ?? ''));
    if (host === undefined) continue;
    hosts.push(host);
    kept.set(host.uid, { record, revision: entry.revision });
  }
  const staying = pools.entries
    .map((entry) => sharedRecordOf(store, wire.PoolRecordSchema, entry))
    .filter(({ deletion }) => deletion === undefined)
    .map(({ pool }) => ({ name: pool?.name ?? '', spec: pool?.spec }));
  const othersOf = (poolId: string) => staying.filter(({ name }) => name !== `pools/${poolId}`);
  const { spec } = fleet?.record.fleet ?? {};
  const shared = { hosts, kept, policy: spec?.templates, registries: spec?.registries ?? [] };
  return (poolId) => ({ ...shared, others: othersOf(poolId) });
}

/** Why nothing destructive begins in a rack now, or can, by its name; empty: it may. */
function brakesOf(
  store: StateStore,
  racks: readonly Entry[],
  fleet: wire.FleetRecord | undefined,
  nowMs: number,
): (rack: string) => string {
  const records = racks.map((entry) => sharedRecordOf(store, wire.RackRecordSchema, entry));
  const texts = new Map(
    records.map((record) => [
      record.rack?.name ?? '',
      whyNothingDestructive(record, fleet) || agentAway(record, nowMs),
    ]),
  );
  const elsewhere = whyNothingDestructive(undefined, fleet);
  return (rack) => texts.get(rack) ?? elsewhere;
}
