/** Cancelling a run, and deleting a workflow. */
import { fromBinary } from '@bufbuild/protobuf';
import {
  batchOfActor,
  failedPrecondition,
  hostRefused,
  type RequestId,
  RunPhase,
  readActor,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import type { RefusalOfHost, Requester } from '../host/index.ts';
import {
  deleteRecord,
  hasApplied,
  orUnavailable,
  readRecord,
  untilWritten,
  writeRecord,
} from '../records/index.ts';
import { isUnread } from './batch-rules.ts';
import { hostRunFor } from './decide.ts';
import type { ReconciledWorkflow } from './loop.ts';
import { batchKey, type WorkflowId, workflowKey, workflowName } from './names.ts';
import { existingWorkflow, type RequestDependencies, reconciledWorkflow } from './read.ts';
import { endWithState, hostRunOf, isOpen, keptRuns, latestRun, withRequestId } from './record.ts';
import { removeFinishedRun } from './remove-run.ts';

const schema = wire.WorkflowRecordSchema;

/** What became of the wish to end a run. */
export type CancelResult =
  /** It ends, or has ended, or there is none. */
  | { readonly kind: 'taken'; readonly kept: ReconciledWorkflow }
  /** Its host refuses that to the requester: the run goes on. */
  | { readonly kind: 'refused'; readonly refusal: RefusalOfHost };

/** Ends the pending or running run; without one nothing changes. Throws the host's refusal. */
export async function cancelWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
  reason: string,
  by: Requester,
): Promise<ReconciledWorkflow> {
  const outcome = await tryCancel(deps, id, reason, by);
  if (outcome.kind === 'taken') return outcome.kept;
  const { refusal } = outcome;
  throw hostRefused(refusal.reason, refusal.message, `hosts/${id.hostId}`);
}

/** The same, of the run with this number only, where one is given. */
export async function tryCancel(
  deps: RequestDependencies,
  id: WorkflowId,
  reason: string,
  by: Requester,
  only?: bigint,
): Promise<CancelResult> {
  const requestId = by.requestId ?? '';
  const taken = (kept: ReconciledWorkflow): CancelResult => ({ kind: 'taken', kept });
  return untilWritten(workflowName(id), async () => {
    const { record, revision, host, hostRevision } = await existingWorkflow(deps, id);
    const run = latestRun(record);
    const done = hasApplied(host, requestId);
    const another = only !== undefined && run?.number !== only;
    if (hasApplied(record, requestId) || done || another || !isOpen(run)) {
      return taken({ record, revision });
    }
    const carrier = hostRunFor(run, host, []);
    if (carrier !== undefined && carrier.phase !== RunPhase.ENDED) {
      // A pass over the workflow wakes its batch, which asks for this again at each of its own. The
      // host remembers a request with an id, so that its repetition ends no later run.
      if (carrier.abort !== undefined && requestId === '') return taken({ record, revision });
      const abort = { kind: 'abort', reason } as const;
      // For the host's state that was read: another run of it must not be ended.
      const outcome = await deps.hosts.request(id.hostId, abort, by, hostRevision);
      if (outcome.kind === 'refused') {
        // Another refusal is of the state that was read, which has changed since.
        const isLasting = outcome.code === 'failedPrecondition';
        return isLasting ? { kind: 'refused', refusal: outcome } : undefined;
      }
      return taken(await reconciledWorkflow(deps, id));
    }
    if (carrier !== undefined || run.state === WorkflowRunState.RUNNING)
      return taken(await reconciledWorkflow(deps, id));
    const next = withRequestId(cancelled(record, reason, by, deps.clock.nowMs()), requestId);
    const written = await writeRecord(deps, schema, workflowKey(id), next, revision);
    return written.kind === 'conflict' ? undefined : taken(await reconciledWorkflow(deps, id));
  });
}

function cancelled(
  record: wire.WorkflowRecord,
  reason: string,
  { actor }: Requester,
  nowMs: number,
): wire.WorkflowRecord {
  const why = reason === '' ? '' : `: ${reason}`;
  const message = `cancelled by ${actor} before it started${why}`;
  const failure = { type: 'cancelled', message } as const;
  return endWithState(record, WorkflowRunState.CANCELLED, failure, nowMs);
}

/** Removes the workflow and its stored runs; `check` throws for another etag. */
export async function deleteWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
  givenId: string,
  check: (kept: ReconciledWorkflow) => void,
): Promise<ReconciledWorkflow> {
  // Under a name of its own: the id of another kind of request is no deletion.
  const requestId = givenId === '' ? '' : `delete:${givenId}`;
  return untilWritten(workflowName(id), async () => {
    const before = await deletedBefore(deps, id, requestId);
    if (before !== undefined) return before;
    const { record, revision, host } = await existingWorkflow(deps, id);
    // The mark of an earlier attempt has changed the etag that was right.
    if (!hasApplied(record, requestId)) check({ record, revision });
    refuseWhileOpen(record, id);
    await refuseUnread(deps, record);
    const key = workflowKey(id);
    // The request first, so that its repetition finds it in the last revision.
    const marked =
      requestId === ''
        ? ({ kind: 'ok', revision } as const)
        : await writeRecord(deps, schema, key, withRequestId(record, requestId), revision);
    if (marked.kind === 'conflict') return undefined;
    const gone = await deleteRecord(deps, key, marked.revision);
    if (gone.kind === 'conflict') return undefined;
    for (const run of keptRuns(record)) {
      await removeFinishedRun(deps, host.host?.uid ?? '', hostRunOf(run));
    }
    return { record, revision };
  });
}

function refuseWhileOpen(record: wire.WorkflowRecord, id: WorkflowId): void {
  const run = latestRun(record);
  if (!isOpen(run)) return;
  const state = run.state === WorkflowRunState.PENDING ? 'pending' : 'running';
  const cancel = `rackwright workflow cancel ${id.hostId} ${id.templateId}`;
  const message = `${run.name} is ${state}; wait for its end, or cancel it: ${cancel}`;
  throw failedPrecondition('WORKFLOW_BUSY', message, { resource: workflowName(id) });
}

/**
 * The run alone tells its batch that the host has had its slot: without it, the host would get a
 * second one. A slot is never given again once its end is noted.
 */
async function refuseUnread(
  { store }: RequestDependencies,
  record: wire.WorkflowRecord,
): Promise<void> {
  for (const { name, batchUid, requestedBy } of keptRuns(record)) {
    const batchId = batchOfActor(readActor(requestedBy));
    if (batchId === undefined || batchUid === '') continue;
    const kept = await readRecord(store, wire.WorkflowBatchRecordSchema, batchKey(batchId));
    if (kept?.record.workflowBatch?.uid !== batchUid) continue;
    if (!isUnread(kept.record, record.workflow?.status?.hostUid ?? '')) continue;
    const message = `${requestedBy} has not noted yet how ${name} ended; try again soon`;
    throw failedPrecondition('WORKFLOW_BUSY', message, { resource: requestedBy });
  }
}

/**
 * What the same request deleted before, also when a new workflow exists since: the request is in
 * the last revision of the deleted one.
 */
async function deletedBefore(
  { store }: RequestDependencies,
  id: WorkflowId,
  requestId: RequestId,
): Promise<ReconciledWorkflow | undefined> {
  if (requestId === '') return undefined;
  const changes = await orUnavailable(store.history(workflowKey(id)));
  for (const [index, last] of changes.entries()) {
    if (last.kind !== 'put' || changes[index + 1]?.kind !== 'delete') continue;
    const record = fromBinary(schema, last.value);
    if (hasApplied(record, requestId)) return { record, revision: last.revision };
  }
  return undefined;
}
