/** A session's changes of its rack's record. */
import { create } from '@bufbuild/protobuf';
import {
  type RackId,
  type RackStatus,
  RackStatusSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { changeRecord, type RecordWriter } from '../../records/index.ts';

/** Changes a copy of the record; called again when another writer was first. */
export type RackChange = (record: wire.RackRecord, status: RackStatus) => void;

/** Writes the record if `change` makes a difference. False when the rack does not exist. */
export async function updateRack(
  writer: RecordWriter,
  rackId: RackId,
  change: RackChange,
): Promise<boolean> {
  const key = storeKey('racks', rackId);
  const changed = await changeRecord(writer, wire.RackRecordSchema, key, (record) => {
    if (record.rack === undefined) return undefined;
    record.rack.status ??= create(RackStatusSchema);
    change(record, record.rack.status);
    return record;
  });
  return changed?.record.rack !== undefined;
}
