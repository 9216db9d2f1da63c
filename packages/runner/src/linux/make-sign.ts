/** A sign of storage of which little is known. */
import type { SignKind, StorageSign } from '@rackwright/erasure';

export function makeSign(
  kind: SignKind,
  name: string,
  change: Partial<StorageSign> = {},
): StorageSign {
  const nothing = { model: '', serial: '', sizeBytes: 0, detail: '', devices: [] };
  return { source: 'bus', kind, name, ...nothing, ...change };
}
