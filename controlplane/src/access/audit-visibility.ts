/**
 * Which audit records a caller with a scope sees: calls about the hosts and racks in the scope.
 *
 * Invariants:
 * 1. Only records since the host was created: an earlier host of its name may have been outside the
 *    scope.
 * 2. A record about no host and no rack is for callers without a scope.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { AuditRecord } from '@rackwright/messages';
import type { FleetView } from '../fleet-view/index.ts';
import { idOf } from '../records/index.ts';
import { includesRack, isInScope, isUnscoped, poolLabel, type Scope } from './principal.ts';

/** A record of a host's creation may be this much older than the host: clocks differ. */
const slackMs = 5_000;

/** Whether a record is visible, by the hosts as they are now. */
export async function auditVisibility(
  view: Pick<FleetView, 'caughtUp' | 'row'>,
  scope: Scope,
): Promise<(record: AuditRecord) => boolean> {
  if (isUnscoped(scope)) return () => true;
  await view.caughtUp();
  const sinceMs = (name: string): number | undefined => {
    const row = name.startsWith('hosts/') ? view.row(idOf(name)) : undefined;
    if (row?.kind !== 'host' || row.createMs === undefined) return undefined;
    const { rack, labels, createMs } = row;
    const isMine = isInScope(scope, { rack, pool: labels[poolLabel] ?? '' });
    return isMine ? createMs - slackMs : undefined;
  };
  return ({ resource, time }) => {
    const name = resource.split('/').slice(0, 2).join('/');
    const atMs = time === undefined ? 0 : timestampMs(time);
    const madeMs = sinceMs(name);
    if (madeMs !== undefined) return atMs >= madeMs;
    return name.startsWith('racks/') && includesRack(scope, name);
  };
}
