/** Host records as the store has them: whoever looks at the same write gets the same record. */
import { fromBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';

/** By the bytes of a write, which never change. */
const decoded = new WeakMap<Uint8Array, wire.HostRecord>();

/** The record in the value of a write. It is shared: a change throws. */
export function hostRecordOf(value: Uint8Array): wire.HostRecord {
  const known = decoded.get(value);
  if (known !== undefined) return known;
  const record = fromBinary(wire.HostRecordSchema, value);
  freeze(record);
  decoded.set(value, record);
  return record;
}

function freeze(part: unknown): void {
  // Bytes cannot be frozen.
  if (typeof part !== 'object' || part === null || part instanceof Uint8Array) return;
  Object.freeze(part);
  for (const value of Object.values(part)) freeze(value);
}
