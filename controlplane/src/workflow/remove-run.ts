/** Removes the stored data of a host's finished run. */
import type { HostUid, RunNumber } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { deleteRecord, orUnavailable, type RecordWriter } from '../records/index.ts';
import { finishedRunKey } from './names.ts';

/** The outputs of its steps, then the run itself. A missing record is no error. */
export async function removeFinishedRun(
  writer: RecordWriter,
  hostUid: HostUid,
  number: RunNumber,
): Promise<void> {
  if (hostUid === '' || number === 0n) return;
  const outputs = storeKey('stepOutputs', hostUid, String(number));
  for (const { key, revision } of (await orUnavailable(writer.store.list(outputs))).entries) {
    await deleteRecord(writer, key, revision);
  }
  const key = finishedRunKey(hostUid, number);
  const kept = await orUnavailable(writer.store.get(key));
  if (kept.kind === 'found') await deleteRecord(writer, key, kept.revision);
}
