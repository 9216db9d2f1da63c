/** Writes to a line of the manifest: which host it has become, and its conflicts. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type HostId, type HostName, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { changeRecord, type RecordWriter, readRecord, writeRecord } from '../records/index.ts';
import { conflictOf } from './judge.ts';
import type { KeptExpected } from './kept.ts';
import { isMadeBy, lineRequestId } from './request.ts';
import type { DiscoverySnapshot } from './snapshot.ts';

/** The dependencies of these writes. */
export interface LineDependencies extends RecordWriter {
  readonly clock: Clock;
}

const schema = wire.ExpectedHostRecordSchema;

/**
 * Updates the given lines: marks those whose host was made before a crash, and writes the conflicts
 * of the others (R2: if they differ).
 */
export async function markTaken(
  deps: LineDependencies,
  lines: readonly KeptExpected[],
  snapshot: DiscoverySnapshot,
): Promise<void> {
  const hosts = new Map(snapshot.hosts.map((host) => [host.hostId, host]));
  for (const line of lines) {
    const { expected, id } = line;
    if (expected.host !== '') continue;
    const host = hosts.get(id);
    if (host !== undefined && isMadeBy(host, lineRequestId(expected.uid))) {
      await markLine(deps, id, expected.uid, host.name);
      continue;
    }
    const conflict = conflictOf(line, snapshot);
    if (conflict === expected.conflict) continue;
    await markConflict(deps, line, conflict);
  }
}

/** Writes which host the line has become. */
export async function markLine(
  deps: LineDependencies,
  id: HostId,
  uid: string,
  host: HostName,
): Promise<void> {
  await changeRecord(deps, schema, recordKey(id), (record) => {
    const line = record.expectedHost;
    if (line?.uid !== uid || line.host === host) return undefined;
    line.host = host;
    line.acceptTime = timestampFromMs(deps.clock.nowMs());
    line.conflict = '';
    return record;
  });
}

/** A line that has changed since the read is examined again. */
async function markConflict(
  deps: LineDependencies,
  { id, revision }: Pick<KeptExpected, 'id' | 'revision'>,
  conflict: string,
): Promise<void> {
  const kept = await readRecord(deps.store, schema, recordKey(id));
  if (kept?.revision !== revision || kept.record.expectedHost === undefined) return;
  kept.record.expectedHost.conflict = conflict;
  await writeRecord(deps, schema, recordKey(id), kept.record, revision);
}

function recordKey(id: HostId): string {
  return storeKey('expectedHosts', id);
}
