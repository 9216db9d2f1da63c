/**
 * A store that was restored or imported is a new incarnation: every rack that was worked for in
 * another one waits for a person, whether its agent is there or not (DESIGN §10).
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { RackStatusSchema, RestoredStoreSchema, store as wire } from '@rackwright/api';
import { storeKey } from '@rackwright/store';
import { readRecord, writeRecord } from '../../records/index.ts';
import type { Followed } from '../fleet/followed.ts';
import type { HostsDependencies } from './reconcile.ts';

/** Compare-and-sets on one rack that may be lost in a row. */
const roundsMax = 16;

/** Marks every such rack; its hosts are then held one by one, each in its next turn. */
export async function holdForNewIncarnation(
  deps: HostsDependencies,
  followed: Followed,
): Promise<void> {
  for (const [rackId, record] of [...followed.racks()]) {
    if (isOfOtherIncarnation(record, deps.store.incarnation)) await mark(deps, followed, rackId);
  }
}

/** Whether the rack was worked for in another incarnation, and nobody has accepted that yet. */
function isOfOtherIncarnation(record: wire.RackRecord, incarnation: string): boolean {
  if (record.agentPublicKey.length === 0 || record.incarnation === '') return false;
  return record.incarnation !== incarnation && record.rack?.status?.restoredStore === undefined;
}

async function mark(deps: HostsDependencies, followed: Followed, rackId: string): Promise<void> {
  const { store, clock, log } = deps;
  const key = storeKey('racks', rackId);
  const schema = wire.RackRecordSchema;
  for (let round = 0; round < roundsMax; round++) {
    const kept = await readRecord(store, schema, key);
    if (kept === undefined || !isOfOtherIncarnation(kept.record, store.incarnation)) return;
    const next = clone(schema, kept.record);
    if (next.rack === undefined) return;
    next.rack.status ??= create(RackStatusSchema);
    next.rack.status.restoredStore = create(RestoredStoreSchema, {
      since: timestampFromMs(clock.nowMs()),
      seenIncarnation: kept.record.incarnation,
      incarnation: store.incarnation,
      revision: BigInt(await store.latestRevision()),
    });
    delete next.acceptedStore;
    // The agent will say how much.
    next.lostBefore += next.lostRevisions;
    next.lostRevisions = 0n;
    const written = await writeRecord(deps, schema, key, next, kept.revision);
    if (written.kind === 'conflict') continue;
    followed.noteRack(rackId, next, written.revision);
    log.warn({ rack: `racks/${rackId}` }, 'the store is another incarnation: its hosts are held');
    return;
  }
  throw new Error(`racks/${rackId}: lost ${roundsMax} compare-and-sets in a row`);
}
