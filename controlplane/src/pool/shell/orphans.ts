/**
 * Claims of pools that are gone. Who asks for a claim has read its pool before; meanwhile another
 * replica may have taken the pool away, that held nothing then.
 *
 * Invariant: hosts are read before their pool. A claim that stands by then had its pool in the
 * store before, so that one which is missing afterwards has gone since.
 */
import { store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import type { Entry, StateStore } from '@rackwright/store';
import { answered, idOf, readShared, sharedRecordOf } from '../../records/index.ts';
import { poolKey } from '../policy/names.ts';
import type { PoolHosts } from './slot-run.ts';

interface OrphanDependencies {
  readonly store: StateStore;
  readonly hosts: PoolHosts;
  readonly log: Pick<Log, 'info'>;
}

/** The id of the pool that claims a host; undefined: none does. */
export function claimingPool(store: StateStore, entry: Entry): string | undefined {
  const by = sharedRecordOf(store, wire.HostRecordSchema, entry).host?.status?.claim?.by ?? '';
  return by.startsWith('pools/') ? idOf(by) : undefined;
}

/** Ends the claims of this pool if there is none. Throws `unavailable`. */
export async function endClaimsOf(
  { store, hosts, log }: OrphanDependencies,
  poolId: string,
): Promise<void> {
  const { entries } = await answered(store.list('hosts'));
  const claimed = entries.filter((entry) => claimingPool(store, entry) === poolId);
  if (claimed.length === 0) return;
  if ((await readShared(store, wire.PoolRecordSchema, poolKey(poolId))) !== undefined) return;
  const reason = `pools/${poolId} is gone`;
  for (const entry of claimed) {
    const { name = '' } = sharedRecordOf(store, wire.HostRecordSchema, entry).host ?? {};
    const request = { kind: 'unclaim', reason } as const;
    const by = { actor: 'system' };
    const { kind } = await hosts.request(idOf(name), request, by, entry.revision);
    if (kind === 'accepted') log.info({ host: name }, `its claim is ended: ${reason}`);
  }
}
