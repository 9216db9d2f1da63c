/** Who holds a host, so that the refusal of a second start names the holder. */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type HostRefusalName, WorkflowRunState, store as wire } from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { orUnavailable, readableRecordOf } from '../records/index.ts';
import { holderText, hostRunFor } from './decide.ts';
import type { WorkflowId } from './names.ts';
import { isOpen, latestRun } from './record.ts';
import { belongsTo } from './view.ts';

/** Why no run of a workflow may begin on a host. */
export interface StartRefusal {
  readonly reason: HostRefusalName;
  readonly message: string;
}

/**
 * Why no run may be accepted now: a run holds the host, or another accepted run is pending on it.
 * Undefined: it may be accepted.
 */
export async function refusalOfStart(
  store: StateStore,
  { hostId }: WorkflowId,
  host: wire.HostRecord,
): Promise<StartRefusal | undefined> {
  const holder = holderText(host);
  if (holder !== undefined) {
    return { reason: 'busy', message: `${holder}; wait for its end or abort it` };
  }
  const { entries } = await orUnavailable(store.list(storeKey('workflows', hostId)));
  for (const entry of entries) {
    const record = readableRecordOf({ store }, wire.WorkflowRecordSchema, entry);
    if (record === undefined) continue;
    const run = latestRun(record);
    if (!belongsTo(record, host.host) || !isOpen(run)) continue;
    // The host's run for it has ended: the end will be recorded in a moment.
    if (run.state !== WorkflowRunState.PENDING || hostRunFor(run, host, [])) continue;
    const since = run.createTime === undefined ? '' : toJson(TimestampSchema, run.createTime);
    const waits = run.waiting === undefined ? '' : ` (${run.waiting.message})`;
    const pending = `hosts/${hostId}: ${run.name} is pending since ${since}${waits}`;
    return { reason: 'workflowPending', message: `${pending}; wait for its end or cancel it` };
  }
  return undefined;
}
