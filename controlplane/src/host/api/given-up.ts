/** Whether the pool that holds a host has given up on it: only the pool's own record says so. */
import { type Host, store as wire } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { parseName } from '../../call/names.ts';
import { poolKey } from '../../pool/index.ts';
import { readRecord } from '../../records/index.ts';

/** False also when the caller does not see the pool. */
export async function hasPoolGivenUp(
  store: StateStore,
  { uid, status }: Pick<Host, 'uid' | 'status'>,
): Promise<boolean> {
  const poolId = parseName('pools', status?.claim?.by ?? '');
  if (poolId === undefined) return false;
  const pool = await readRecord(store, wire.PoolRecordSchema, poolKey(poolId));
  // Without a basis the failure no longer counts against the host.
  return pool?.record.failures.some((each) => each.hostUid === uid && each.basis !== '') ?? false;
}
