/**
 * A pool's requests to hosts apart from the runs of its slots: claims of its members, releases of
 * other hosts, and the end of a reimage that is called off. A host that is left dirty is cleaned by
 * its own goal.
 *
 * Invariant: each request follows from the pool's durable record, and goes to the host in the state
 * that was read: a host that has changed since is read again.
 */
import { readActor, type store as wire } from '@rackwright/messages';
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

/** Sends each host its pending requests; returns how many hosts changed. */
export async function sendHostRequests(
  { hosts, log }: AskingDependencies,
  record: wire.PoolRecord,
  snapshot: Pick<PoolSnapshot, 'hosts' | 'kept'>,
  callOffs: CallOffs,
): Promise<number> {
  const pool = record.pool?.name ?? '';
  const members = new Set(record.members.map(({ hostUid }) => hostUid));
  let changed = 0;
  for (const host of snapshot.hosts) {
    const reason = callOffs.get(host.uid);
    const request: HostRequest | undefined =
      reason === undefined
        ? wantedOf(record, host, members.has(host.uid))
        : { kind: 'abort', reason };
    if (request === undefined) continue;
    const by = { actor: readActor(pool) };
    const hostId = idOf(host.name);
    const outcome = await hosts.request(hostId, request, by, snapshot.kept.get(host.uid)?.revision);
    const isChanged = outcome.kind === 'accepted' || outcome.kind === 'removed';
    // A host that has changed in between wakes the pool.
    if (isChanged) changed += 1;
    else if (outcome.kind === 'refused' && outcome.code !== 'aborted') {
      log.debug({ pool, host: host.name, action: request.kind }, outcome.message);
    }
  }
  return changed;
}

/** The pool's present request to a host; undefined: none. Pure. */
export function wantedOf(
  { pool, deletion }: wire.PoolRecord,
  host: SeenHost,
  isMember: boolean,
): HostRequest | undefined {
  const isClaimed = host.claimedBy !== undefined && host.claimedBy === pool?.name;
  if (!isMember) return isClaimed ? { kind: 'unclaim', reason: 'it left the pool' } : undefined;
  if (host.claimedBy !== undefined) return undefined;
  // A person may release a host that stays only for its run, and the release lasts.
  const isIn = deletion === undefined && isSelected(pool?.spec?.hosts, host);
  return isIn ? { kind: 'claim', reason: 'a host of the pool' } : undefined;
}
