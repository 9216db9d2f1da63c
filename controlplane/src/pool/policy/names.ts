/** Names of pools, and the keys of their records. Pure. */
import {
  asPoolId,
  asPoolUid,
  type HostUid,
  isChosenId,
  type Pool,
  type PoolId,
  type PoolUid,
  type RunNumber,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';

/** Key of a pool's record. */
export function poolKey(poolId: PoolId): string {
  return storeKey('pools', poolId);
}

/** The pool whose record a key is for; undefined for other keys. */
export function poolOfKey(key: string): PoolId | undefined {
  return poolIn(key.split('.'));
}

/** The pool of this name; undefined when the text names none. */
export function poolOfName(name: string): PoolId | undefined {
  return poolIn(name.split('/'));
}

function poolIn([collection, poolId = '', ...rest]: readonly string[]): PoolId | undefined {
  if (collection !== 'pools' || rest.length > 0) return undefined;
  return isChosenId(poolId) ? asPoolId(poolId) : undefined;
}

/** '' without a pool. */
export function poolUidOf(pool: Pick<Pool, 'uid'> | undefined): PoolUid {
  return asPoolUid(pool?.uid ?? '');
}

/** The key prefix of all entries of a pool's ledger. */
export function ledgerPrefix(poolUid: PoolUid): string {
  return storeKey('deployments', poolUid);
}

/** Key of an entry of the ledger: one for each run of a host. */
export function deploymentKey(poolUid: PoolUid, hostUid: HostUid, run: RunNumber): string {
  return storeKey('deployments', poolUid, hostUid, String(run));
}
