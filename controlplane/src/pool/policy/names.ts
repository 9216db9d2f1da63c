/** Names of pools, and the keys of their records. Pure. */
import type { HostUid, RunNumber } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';

/** Key of a pool's record. */
export function poolKey(poolId: string): string {
  return storeKey('pools', poolId);
}

/** The key prefix of all entries of a pool's ledger. */
export function ledgerPrefix(poolUid: string): string {
  return storeKey('deployments', poolUid);
}

/** Key of an entry of the ledger: one for each run of a host. */
export function deploymentKey(poolUid: string, hostUid: HostUid, run: RunNumber): string {
  return storeKey('deployments', poolUid, hostUid, String(run));
}
