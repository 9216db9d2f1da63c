/**
 * Claims of pools that are gone. Who asks for a claim has read its pool before; meanwhile another
 * replica may have taken the pool away, that held nothing then.
 *
 * Invariant: hosts are read before their pool. A claim that stands by then had its pool in the
 * store before, so that one which is missing afterwards has gone since.
 */
import { store as wire } from '@rackwright/messages';
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

/** Ends the claims of this pool if there is none. Throws `unavailable`. */
export async function endClaimsOf(
  { store, fleetView, hosts, log }: OrphanDependencies,
  poolId: string,
): Promise<void> {
  const pool = `pools/${poolId}`;
  await fleetView.caughtUp();
  const reason = `${pool} is gone`;
  for (const hostId of [...fleetView.idsBy('claim', pool)]) {
    const host = await readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    if (host?.record.host?.status?.claim?.by !== pool) continue;
    if ((await readShared(store, wire.PoolRecordSchema, poolKey(poolId))) !== undefined) return;
    const request = { kind: 'unclaim', reason } as const;
    const by = { actor: 'system' };
    const { kind } = await hosts.request(hostId, request, by, host.revision);
    if (kind === 'accepted') log.info({ host: `hosts/${hostId}` }, `its claim is ended: ${reason}`);
  }
}
