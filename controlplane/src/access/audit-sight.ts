/**
 * What of the audit stream a caller with a scope sees: what was asked of the hosts and racks in it.
 *
 * Invariants:
 * 1. Of a host only what came after it was made: an earlier one of its name was perhaps
 *    elsewhere.
 * 2. What concerns no host and no rack is for callers without a scope.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { AuditRecord } from '@rackwright/messages';
import type { FleetView } from '../fleet-view/index.ts';
import { idOf } from '../records/index.ts';
import { includes, includesRack, isUnscoped, poolLabel, type Scope } from './principal.ts';

/** How much earlier than the host a record of its making may say to be: clocks differ. */
const slackMs = 5_000;

/** Whether a record is in sight, as hosts are now. */
export async function auditInSight(
  view: Pick<FleetView, 'caughtUp' | 'row'>,
  scope: Scope,
): Promise<(record: AuditRecord) => boolean> {
  if (isUnscoped(scope)) return () => true;
  await view.caughtUp();
  const sinceMs = (name: string): number | undefined => {
    const row = name.startsWith('hosts/') ? view.row(idOf(name)) : undefined;
    if (row?.kind !== 'host' || row.createMs === undefined) return undefined;
    const { rack, labels, createMs } = row;
    const isMine = includes(scope, { rack, pool: labels[poolLabel] ?? '' });
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
