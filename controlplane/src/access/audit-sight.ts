/**
 * What of the audit stream a caller with a scope sees: what was asked of the hosts and racks in it.
 *
 * Invariants:
 * 1. Of a host only what came after it was made: an earlier one of its name was perhaps
 *    elsewhere.
 * 2. What concerns no host and no rack is for callers without a scope.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type AuditRecord, store as wire } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { answered } from '../records/index.ts';
import { includes, includesRack, isUnscoped, placeOf, type Scope } from './principal.ts';

/** How much earlier than the host a record of its making may say to be: clocks differ. */
const slackMs = 5_000;

/** Whether a record is in sight, as hosts are now. */
export async function auditInSight(
  store: StateStore,
  scope: Scope,
): Promise<(record: AuditRecord) => boolean> {
  if (isUnscoped(scope)) return () => true;
  const sinceMs = new Map<string, number>();
  for (const { value } of (await answered(store.list('hosts'))).entries) {
    const { host } = fromBinary(wire.HostRecordSchema, value);
    if (host?.createTime === undefined || !includes(scope, placeOf(host))) continue;
    sinceMs.set(host.name, timestampMs(host.createTime) - slackMs);
  }
  return ({ resource, time }) => {
    const name = resource.split('/').slice(0, 2).join('/');
    const atMs = time === undefined ? 0 : timestampMs(time);
    const madeMs = sinceMs.get(name);
    if (madeMs !== undefined) return atMs >= madeMs;
    return name.startsWith('racks/') && includesRack(scope, name);
  };
}
