/**
 * Claims of deleted pools. A claim is requested after its pool was read; in between, another
 * replica may have deleted the pool, which held nothing then.
 *
 * Invariant: hosts are read before their pool. The pool of a claim that exists by then was in the
 * store before. So a pool that is missing afterwards has been deleted since.
 */
import { actors, type PoolId, poolActor, store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import type { FleetView } from '../../fleet-view/index.ts';
import { readShared } from '../../records/index.ts';
import { poolKey } from '../policy/names.ts';
import type { PoolHosts } from './slot-run.ts';

interface OrphanDependencies {
  readonly store: StateStore;
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'idsBy'>;
  readonly hosts: PoolHosts;
  readonly log: Pick<Log, 'info'>;
}

/** Ends the claims of this pool if it does not exist. Throws `unavailable`. */
export async function endClaimsOf(
  { store, fleetView, hosts, log }: OrphanDependencies,
  poolId: PoolId,
): Promise<void> {
  const pool = poolActor(poolId);
  await fleetView.caughtUp();
  const reason = `${pool} is gone`;
  for (const hostId of [...fleetView.idsBy('claim', pool)]) {
    const host = await readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    if (host?.record.host?.status?.claim?.by !== pool) continue;
    if ((await readShared(store, wire.PoolRecordSchema, poolKey(poolId))) !== undefined) return;
    const request = { kind: 'unclaim', reason } as const;
    const by = { actor: actors.system };
    const { kind } = await hosts.request(hostId, request, by, host.revision);
    if (kind === 'accepted') log.info({ host: `hosts/${hostId}` }, `its claim is ended: ${reason}`);
  }
}
