/**
 * The records that a forced removal writes before the host's record is deleted, and removes once
 * the agent has confirmed that it forgot the host (DESIGN §3, §7).
 *
 * Invariants:
 * 1. The order is: the intent in the host's record, record of the remains, tombstone, deletion of
 *    the host's record. A crash in between leaves a host that is to be removed, and its removal
 *    begins again under the same names. No host that stays is ever forgotten by its agent.
 * 2. The fence is lifted before the tombstone is removed: after a crash in between, the agent is
 *    asked again.
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

/** The most lost compare-and-sets on one rack in a row: many hosts may be removed at once. */
const roundsMax = 64;

/** Writes the record of the remains; an interrupted removal may have done so already. */
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
 * The rack's agent has forgotten the host. True: that changed something. A removal that crashed
 * before its tombstone, and was ended by the agent's confirmation, has left a fence without a
 * tombstone.
 */
export async function takeTombstone(deps: Writing, rackId: RackId, uid: HostUid): Promise<boolean> {
  const kept = await readRecord(deps.store, wire.RackRecordSchema, storeKey('racks', rackId));
  const hasTombstone = kept?.record.tombstones.includes(uid) === true;
  let lifted = false;
  await changeAbandoned(deps, uid, (resource) => {
    // Only the confirmation of the agent of the host's own rack counts.
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

/** A deleted rack has no agent that could act. */
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
