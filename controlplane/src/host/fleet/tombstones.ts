/**
 * What a forced removal writes before the host's record goes, and takes away once the agent has
 * confirmed that it forgot the host (DESIGN §3, §7).
 *
 * Invariants:
 * 1. First what was left behind, then the tombstone, then the host's record goes: a crash in
 *    between leaves the host, and its removal begins again under the same names.
 * 2. First the fence is lifted, then the tombstone goes: a crash in between asks the agent again.
 */
import { create } from '@bufbuild/protobuf';
import { type HostUid, type RackId, store as wire } from '@rackwright/messages';
import type { CrashPoint } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { changeRecord, type RecordWriter, readRecord, writeRecord } from '../../records/index.ts';
import type { HostEffect } from '../pass/types.ts';
import { changeAbandoned } from './fences.ts';
import { rackIdOf } from './host-index.ts';

type Writing = RecordWriter & { readonly crashPoint: CrashPoint };

/** Compare-and-sets on one rack that may be lost in a row: many hosts may go at once. */
const roundsMax = 64;

/** Writes what was left of the host; a removal before a crash may have done so already. */
export async function writeAbandoned(
  deps: Writing,
  { resource, bmc }: Extract<HostEffect, { kind: 'abandon' }>,
): Promise<void> {
  const record = create(wire.AbandonedRecordSchema, {
    resource,
    ...(bmc === undefined ? {} : { bmc }),
  });
  const key = storeKey('abandonedResources', resource.hostUid);
  await writeRecord(deps, wire.AbandonedRecordSchema, key, record, 'absent');
  deps.crashPoint('cp.abandonedStored');
}

export async function writeTombstone(deps: Writing, record: wire.HostRecord): Promise<void> {
  const uid = record.host?.uid ?? '';
  await changeRack(deps, rackIdOf(record), (rack) => {
    if (!rack.tombstones.includes(uid)) rack.tombstones.push(uid);
  });
  deps.crashPoint('cp.tombstoneStored');
}

/**
 * The rack's agent has forgotten the host. Whether that changed anything: a removal that crashed
 * before its tombstone, and was ended by the agent's word, has left a fence without one.
 */
export async function takeTombstone(deps: Writing, rackId: RackId, uid: HostUid): Promise<boolean> {
  const kept = await readRecord(deps.store, wire.RackRecordSchema, storeKey('racks', rackId));
  const hasTombstone = kept?.record.tombstones.includes(uid) === true;
  let lifted = false;
  await changeAbandoned(deps, uid, (resource) => {
    // Only the agent of the host's own rack can act on it no more.
    lifted = resource.fencePending && (hasTombstone || resource.rack === `racks/${rackId}`);
    if (lifted) resource.fencePending = false;
    return lifted;
  });
  if (!hasTombstone) return lifted;
  deps.crashPoint('cp.fenceLifted');
  await changeRack(deps, rackId, (rack) => {
    rack.tombstones = rack.tombstones.filter((each) => each !== uid);
  });
  return true;
}

/** A rack that is gone has no agent that could act on anything. */
async function changeRack(
  deps: Writing,
  rackId: RackId,
  change: (rack: wire.RackRecord) => void,
): Promise<void> {
  const edit = (rack: wire.RackRecord) => {
    change(rack);
    return rack;
  };
  const key = storeKey('racks', rackId);
  await changeRecord(deps, wire.RackRecordSchema, key, edit, { roundsMax });
}
