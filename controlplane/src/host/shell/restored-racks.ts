/**
 * A store that was restored or imported is a new incarnation: every rack with work from another one
 * waits for a person, whether or not its agent is connected (DESIGN §10).
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRevision,
  type Incarnation,
  noRevision,
  type RackId,
  RackStatusSchema,
  RestoredStoreSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { changeRecord } from '../../records/index.ts';
import type { FleetFollower } from '../fleet/followed.ts';
import type { HostsDependencies } from './dependencies.ts';

/** Marks every such rack; each of its hosts is then held in its next reconcile. */
export async function holdForNewIncarnation(
  deps: HostsDependencies,
  followed: FleetFollower,
): Promise<void> {
  for (const [rackId, record] of [...followed.racks()]) {
    if (isOfOtherIncarnation(record, deps.store.incarnation)) await mark(deps, followed, rackId);
  }
}

/** Whether the rack has work from another incarnation that was not accepted yet. */
function isOfOtherIncarnation(record: wire.RackRecord, incarnation: Incarnation): boolean {
  if (record.agentPublicKey.length === 0 || record.incarnation === '') return false;
  return record.incarnation !== incarnation && record.rack?.status?.restoredStore === undefined;
}

async function mark(
  deps: HostsDependencies,
  followed: FleetFollower,
  rackId: RackId,
): Promise<void> {
  const { store, clock, log } = deps;
  const { incarnation } = store;
  const key = storeKey('racks', rackId);
  const marked = await changeRecord(deps, wire.RackRecordSchema, key, async (record) => {
    const { rack } = record;
    if (rack === undefined || !isOfOtherIncarnation(record, incarnation)) return undefined;
    rack.status ??= create(RackStatusSchema);
    rack.status.restoredStore = create(RestoredStoreSchema, {
      since: timestampFromMs(clock.nowMs()),
      seenIncarnation: record.incarnation,
      incarnation,
      revision: asRevision(await store.latestRevision()),
    });
    delete record.acceptedStore;
    // The agent will report how much.
    record.lostBefore += record.lostRevisions;
    record.lostRevisions = noRevision;
    return record;
  });
  if (marked?.isWritten !== true) return;
  followed.noteRack(rackId, marked.record, marked.revision);
  log.warn({ rack: `racks/${rackId}` }, 'the store is another incarnation: its hosts are held');
}
