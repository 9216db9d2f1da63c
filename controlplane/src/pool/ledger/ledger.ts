/** Reads the deploy ledger. */
import { type PoolUid, store as wire } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { orUnavailable, sharedRecordOf } from '../../records/index.ts';
import { ledgerPrefix } from '../policy/names.ts';

/** All entries of a pool. Throws `unavailable`. */
export async function readLedger(
  store: StateStore,
  poolUid: PoolUid,
): Promise<wire.DeploymentRecord[]> {
  const { entries } = await orUnavailable(store.list(ledgerPrefix(poolUid)));
  return entries.map((entry) => sharedRecordOf(store, wire.DeploymentRecordSchema, entry));
}
