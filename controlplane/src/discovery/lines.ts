/** What is written of a line of the manifest: which host it has become, and who contests it. */
import { clone } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ExpectedHost, ExpectedHostSchema, store as wire } from '@rackwright/api';
import type { Clock } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { type RecordWriter, readRecord, writeRecord } from '../records/index.ts';
import { conflictOf } from './judge.ts';
import { lineRequestId } from './request.ts';
import type { World } from './world.ts';

/** What writing them needs. */
export interface LineDependencies extends RecordWriter {
  readonly clock: Clock;
}

/** Compare-and-sets that one change may lose. */
const roundsMax = 8;

/** Lines whose host was made before a crash, and what the others say (R2: if it differs). */
export async function markTaken(deps: LineDependencies, world: World): Promise<void> {
  for (const line of world.expected) {
    const { expected, id } = line;
    if (expected.host !== '') continue;
    const host = world.hosts.find(({ hostId }) => hostId === id);
    if (host?.requestIds.includes(`create:${lineRequestId(expected.uid)}`) === true) {
      await markLine(deps, id, expected.uid, host.name);
      continue;
    }
    const conflict = conflictOf(line, world);
    if (conflict === expected.conflict) continue;
    const next = clone(ExpectedHostSchema, expected);
    next.conflict = conflict;
    await writeLine(deps, id, next, line.revision);
  }
}

/** Says which host the line has become. */
export async function markLine(
  deps: LineDependencies,
  id: string,
  uid: string,
  host: string,
): Promise<void> {
  const { store, clock } = deps;
  for (let round = 0; round < roundsMax; round += 1) {
    const kept = await readRecord(store, wire.ExpectedHostRecordSchema, lineKey(id));
    const line = kept?.record.expectedHost;
    if (kept === undefined || line?.uid !== uid || line.host === host) return;
    const next = clone(ExpectedHostSchema, line);
    next.host = host;
    next.acceptTime = timestampFromMs(clock.nowMs());
    next.conflict = '';
    if (await writeLine(deps, id, next, kept.revision)) return;
  }
}

async function writeLine(
  deps: LineDependencies,
  id: string,
  expectedHost: ExpectedHost,
  revision: number,
): Promise<boolean> {
  const schema = wire.ExpectedHostRecordSchema;
  const kept = await readRecord(deps.store, schema, lineKey(id));
  if (kept?.revision !== revision) return false;
  const record = clone(schema, kept.record);
  record.expectedHost = expectedHost;
  return (await writeRecord(deps, schema, lineKey(id), record, revision)).kind === 'ok';
}

function lineKey(id: string): string {
  return storeKey('expectedHosts', id);
}
