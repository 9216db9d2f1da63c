/**
 * A host's slot in a batch: its workflow gets a pending run that the batch owns, and the result of
 * the run is read.
 *
 * Invariant: however often it is requested, one batch gives one host one run. The run names the
 * batch; once the run is swept, the workflow remembers the batch like any other request. The
 * workflow is not deleted before the batch has noted how the run ended; a batch that has noted a
 * run gives no other, whatever became of it.
 */
import { create } from '@bufbuild/protobuf';
import {
  ApiFailure,
  type HostUid,
  pendingWaitOf,
  type RequestId,
  readActor,
  type WorkflowBatchHost,
  type WorkflowRun,
  WorkflowRunState,
  WorkflowSpecSchema,
  store as wire,
} from '@rackwright/messages';
import { isInUseOf } from '../host/index.ts';
import { hasApplied, untilWritten, writeRecord } from '../records/index.ts';
import { type SlotState, workflowIdOf } from './batch-rules.ts';
import { hostRunFor } from './decide.ts';
import { tryCancel } from './endings.ts';
import { type WorkflowId, workflowKey, workflowName } from './names.ts';
import { type RequestDependencies, readWorkflow } from './read.ts';
import { acceptRun, isOpen, keptRuns, latestRun, type RunOrder } from './record.ts';
import { newWorkflow, whyAboveLimit } from './requests.ts';
import { presentRunOf } from './view.ts';

const schema = wire.WorkflowRecordSchema;

/** The known state of the slot of the host at this index, after it has got its run. */
export async function takeSlot(
  deps: RequestDependencies,
  record: wire.WorkflowBatchRecord,
  index: number,
): Promise<SlotState> {
  const { workflowBatch: batch } = record;
  const entry = batch?.status?.hosts[index];
  if (batch === undefined || entry === undefined) {
    throw new Error(`the batch has no host at index ${index}`);
  }
  const id = workflowIdOf(batch.spec?.template ?? '', entry.host);
  return untilWritten(workflowName(id), async () => {
    const found = await readHostWorkflow(deps, id, record.hostUids[index] ?? '');
    if (found === undefined) return { kind: 'refused', message: `${entry.host} is gone` };
    const { host, kept, expectedRevision } = found;
    if (hasHadSlot(entry, kept?.record, record)) {
      return slotOf(deps, record, id, host, kept?.record);
    }
    if (record.cancelled !== undefined) return { kind: 'cancelled' };
    const latest = kept === undefined ? undefined : latestRun(kept.record);
    if (isOpen(latest) && hasEnded(latest, host)) {
      // Its host has already ended the old run: that is written before a new run replaces it.
      await deps.workflows.reconcile(id);
      return undefined;
    }
    if (isOpen(latest)) {
      return { kind: 'refused', message: `${latest.name} is under way already` };
    }
    const use = record.hostUses[index];
    if (use === undefined || !isInUseOf(host, use)) {
      return { kind: 'refused', message: `${entry.host} has changed hands since` };
    }
    const above = kept === undefined ? await whyAboveLimit(deps.store, id) : undefined;
    if (above !== undefined) return { kind: 'refused', message: above };
    const spec = create(WorkflowSpecSchema, { variables: variablesOf(record) });
    const nowMs = deps.clock.nowMs();
    const before = kept?.record ?? (await newWorkflow(deps, id, spec, host, nowMs));
    const next = acceptRun(before, id, { ...orderOf(record), use }, nowMs);
    const written = await writeRecord(deps, schema, workflowKey(id), next, expectedRevision);
    if (written.kind === 'conflict') return undefined;
    const reconciled = await deps.workflows.reconcile(id);
    return slotOf(deps, record, id, host, reconciled?.record ?? next);
  });
}

async function readHostWorkflow(deps: RequestDependencies, id: WorkflowId, hostUid: HostUid) {
  try {
    const found = await readWorkflow(deps, id);
    return found.host.host?.uid === hostUid ? found : undefined;
  } catch (error) {
    if (error instanceof ApiFailure && error.error.kind === 'notFound') return undefined;
    throw error;
  }
}

async function slotOf(
  deps: RequestDependencies,
  batch: wire.WorkflowBatchRecord,
  id: WorkflowId,
  host: wire.HostRecord,
  workflow: wire.WorkflowRecord | undefined,
): Promise<SlotState> {
  const run = workflow === undefined ? undefined : runOf(workflow, batch);
  if (run === undefined) {
    if (batch.cancelled !== undefined) return { kind: 'cancelled' };
    return {
      kind: 'refused',
      message: 'its run was swept or deleted before its end was noted, or its host changed hands',
    };
  }
  const shown = await presentRunOf(deps.store, run, host);
  if (!isOpen(shown)) return { kind: 'run', run: shown };
  if (batch.cancelled !== undefined) {
    const { by: actor, reason } = batch.cancelled;
    const canceller = { actor: readActor(actor), mayEndOthersUse: batch.cancelledByAdmin };
    // A host that refuses it keeps its run, and the slot with it, until the run ends.
    await tryCancel(deps, id, reason, canceller, run.number);
    return { kind: 'run', run: shown };
  }
  const isPending = shown.state === WorkflowRunState.PENDING;
  const refused = isPending && pendingWaitOf(shown.waiting) === 'host';
  if (!refused) return { kind: 'run', run: shown };
  // It would wait in its slot, and delay others, for as long as it may.
  const message = shown.waiting?.message ?? '';
  const creator = { actor: readActor(batch.createdBy) };
  await tryCancel(deps, id, `refused: ${message}`, creator, run.number);
  return { kind: 'refused', message };
}

/**
 * The request is forgotten sooner than its run, and the run may be swept before the request. The
 * batch has the run's number once it has read the run.
 */
function hasHadSlot(
  entry: WorkflowBatchHost,
  workflow: wire.WorkflowRecord | undefined,
  batch: wire.WorkflowBatchRecord,
): boolean {
  const isKnown = (kept: wire.WorkflowRecord) =>
    runOf(kept, batch) !== undefined || hasApplied(kept, requestIdOf(batch));
  return entry.run !== '' || (workflow !== undefined && isKnown(workflow));
}

/** By the uid: an earlier batch may have had the name. */
function runOf(
  workflow: wire.WorkflowRecord,
  { workflowBatch }: wire.WorkflowBatchRecord,
): WorkflowRun | undefined {
  const uid = workflowBatch?.uid ?? '';
  return uid === '' ? undefined : keptRuns(workflow).find(({ batchUid }) => batchUid === uid);
}

function requestIdOf({ workflowBatch }: wire.WorkflowBatchRecord): RequestId {
  return `batch:${workflowBatch?.uid}`;
}

function variablesOf({ workflowBatch }: wire.WorkflowBatchRecord) {
  return workflowBatch?.spec?.variables ?? {};
}

/** Whether the host's own record shows the end. */
function hasEnded(run: WorkflowRun, host: wire.HostRecord): boolean {
  return hostRunFor(run, host, [])?.endTime !== undefined;
}

function orderOf(record: wire.WorkflowBatchRecord): Omit<RunOrder, 'use'> {
  const { workflowBatch: batch, createdBy, templateDigest } = record;
  return {
    requestedBy: readActor(batch?.name ?? ''),
    actor: readActor(createdBy),
    ownerUid: batch?.uid ?? '',
    variables: variablesOf(record),
    requestId: requestIdOf(record),
    templateDigest,
    plan: undefined,
  };
}
