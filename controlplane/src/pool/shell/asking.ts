/**
 * What a pool asks of hosts beside the runs of its slots: claims of those that it holds, giving
 * back those that it does not hold any more, and the end of a reimage that is called off. Who is
 * left dirty is cleaned by its own goal.
 *
 * Invariant: asked is only for what the pool's durable record says, of the very host that was
 * looked at: one that has changed since is looked at again.
 */
import type { store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import type { HostRequest } from '../../host/index.ts';
import { idOf } from '../../records/index.ts';
import type { CallOffs } from '../decide/call-off.ts';
import { isSelected, type SeenHost } from '../facts/seen.ts';
import type { PoolHosts } from './slot-run.ts';
import type { PoolSnapshot } from './snapshot.ts';

export interface AskingDependencies {
  readonly hosts: PoolHosts;
  readonly log: Pick<Log, 'debug'>;
}

/** Asks each host for what it owes; answers how many of them changed by that. */
export async function askForHosts(
  { hosts, log }: AskingDependencies,
  record: wire.PoolRecord,
  world: Pick<PoolSnapshot, 'hosts' | 'kept'>,
  callOffs: CallOffs,
): Promise<number> {
  const pool = record.pool?.name ?? '';
  const members = new Set(record.members.map(({ hostUid }) => hostUid));
  let changed = 0;
  for (const host of world.hosts) {
    const reason = callOffs.get(host.uid);
    const request: HostRequest | undefined =
      reason === undefined
        ? wantedOf(record, host, members.has(host.uid))
        : { kind: 'abort', reason };
    if (request === undefined) continue;
    const by = { actor: pool };
    const hostId = idOf(host.name);
    const outcome = await hosts.request(hostId, request, by, world.kept.get(host.uid)?.revision);
    const isChanged = outcome.kind === 'accepted' || outcome.kind === 'removed';
    // One that has changed in between wakes the pool by that.
    if (isChanged) changed += 1;
    else if (outcome.kind === 'refused' && outcome.code !== 'aborted') {
      log.debug({ pool, host: host.name, action: request.kind }, outcome.message);
    }
  }
  return changed;
}

/** What the pool wants of a host now; undefined: nothing. Pure. */
export function wantedOf(
  { pool, deletion }: wire.PoolRecord,
  host: SeenHost,
  isMember: boolean,
): HostRequest | undefined {
  const isClaimed = host.claimedBy !== undefined && host.claimedBy === pool?.name;
  if (!isMember) return isClaimed ? { kind: 'unclaim', reason: 'it left the pool' } : undefined;
  if (host.claimedBy !== undefined) return undefined;
  // Who stays for its run alone may be given up by a person, and that lasts.
  const isIn = deletion === undefined && isSelected(pool?.spec?.hosts, host);
  return isIn ? { kind: 'claim', reason: 'a host of the pool' } : undefined;
}
