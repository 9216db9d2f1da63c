/** A session's changes of its rack's record. */
import { clone, create, equals } from '@bufbuild/protobuf';
import { type RackStatus, RackStatusSchema, store as wire } from '@rackwright/api';
import { storeKey } from '@rackwright/store';
import { type RecordWriter, readRecord, writeRecord } from '../records/index.ts';

/** Compare-and-sets that one change may lose. */
const roundsMax = 8;

/** Changes a copy of the record; called again when another writer was faster. */
export type RackChange = (record: wire.RackRecord, status: RackStatus) => void;

/** Writes the record if `change` makes a difference. False when the rack does not exist. */
export async function updateRack(
  writer: RecordWriter,
  rackId: string,
  change: RackChange,
): Promise<boolean> {
  const key = storeKey('racks', rackId);
  for (let round = 0; round < roundsMax; round++) {
    const kept = await readRecord(writer.store, wire.RackRecordSchema, key);
    if (kept?.record.rack === undefined) return false;
    const record = clone(wire.RackRecordSchema, kept.record);
    if (record.rack === undefined) return false;
    record.rack.status ??= create(RackStatusSchema);
    change(record, record.rack.status);
    if (equals(wire.RackRecordSchema, kept.record, record)) return true;
    const written = await writeRecord(writer, wire.RackRecordSchema, key, record, kept.revision);
    if (written.kind === 'ok') return true;
  }
  throw new Error(`rack ${rackId}: lost ${roundsMax} compare-and-sets in a row`);
}
