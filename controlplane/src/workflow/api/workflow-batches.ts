/** WorkflowBatchService: one template on many hosts, a bounded number at once. */
import { clone, create, equals, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  alreadyExists,
  asBatchId,
  type BatchId,
  type BoundService,
  bind,
  type CancelWorkflowBatchRequest,
  type CreateWorkflowBatchRequest,
  type DeleteWorkflowBatchRequest,
  failedPrecondition,
  invalidArgument,
  notFound,
  type RequestId,
  type WorkflowBatch,
  WorkflowBatchSchema,
  WorkflowBatchService,
  type WorkflowBatchSpec,
  WorkflowBatchSpecSchema,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { type StoreRevision, storeKey, VALUE_BYTES_MAX } from '@rackwright/store';
import { idProblem, requireName } from '../../call/names.ts';
import { listPage } from '../../call/paging.ts';
import { type RpcDependencies, requester } from '../../call/ports.ts';
import { checkEtag, formatPosition } from '../../call/position.ts';
import { checkReason, checkRequestId } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import {
  appliedId,
  deleteRecord,
  hasApplied,
  orUnavailable,
  readableRecordOf,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { batchKey, isBatchEnded, parseBatchName, shownBatch } from '../index.ts';
import { readTemplateDigest } from '../templates/index.ts';
import { pageOfHosts } from './batch-hosts.ts';
import { checkBatchSpec, type SelectedHost, selectHosts } from './batch-spec.ts';

const schema = wire.WorkflowBatchRecordSchema;
const createMethod = 'createWorkflowBatch';
/** The most batches. */
const batchesMax = 1_000;
/** The growth of the record for each host while the batch runs: a run's number and a message. */
const bytesPerHostMax = 140;

/** The service over these dependencies. */
export function createWorkflowBatchService(deps: RpcDependencies): BoundService {
  return bind(WorkflowBatchService, {
    createWorkflowBatch: (request) => createBatch(deps, request),
    getWorkflowBatch: async ({ name }) => {
      const { record, revision } = await existing(deps, requireBatchName(name));
      return present(deps, record, revision);
    },
    listWorkflowBatches: async (request) => {
      const page = await listPage(
        deps.store,
        'workflowBatches',
        request,
        '',
        (entry) => {
          const record = readableRecordOf(deps, schema, entry);
          return record && present(deps, record, entry.revision);
        },
        undefined,
        // The record has a run's number, the response its name.
        (batch) => toBinary(WorkflowBatchSchema, batch).byteLength,
      );
      return { workflowBatches: [...page.items], nextPageToken: page.nextPageToken };
    },
    listWorkflowBatchHosts: async (request) => {
      const { record, revision } = await existing(deps, requireBatchName(request.parent, 'parent'));
      return pageOfHosts(deps.store, present(deps, record, revision), request);
    },
    cancelWorkflowBatch: (request) => cancelBatch(deps, request),
    deleteWorkflowBatch: (request) => deleteBatch(deps, request),
  });
}

function requireBatchName(name: string, field = 'name'): BatchId {
  const batchId = parseBatchName(name);
  if (batchId !== undefined) return batchId;
  const wanted = 'must name a batch, as in "workflowBatches/set-clocks"';
  const description = name === '' ? `is missing; it ${wanted}` : `is ${quote(name)}; it ${wanted}`;
  throw invalidArgument([{ field, description }]);
}

async function existing({ store }: RpcDependencies, batchId: BatchId) {
  const kept = await readRecord(store, schema, batchKey(batchId));
  if (kept === undefined) throw notFound(`workflowBatches/${batchId}`);
  return kept;
}

function present(
  { store }: RpcDependencies,
  record: wire.WorkflowBatchRecord,
  revision: StoreRevision,
): WorkflowBatch {
  const batch = clone(WorkflowBatchSchema, record.workflowBatch ?? create(WorkflowBatchSchema));
  batch.etag = formatPosition(store, revision);
  return shownBatch(record, batch);
}

async function createBatch(
  deps: RpcDependencies,
  request: CreateWorkflowBatchRequest,
): Promise<WorkflowBatch> {
  const { workflowBatchId, workflowBatch, requestId, validateOnly } = request;
  const violations = new Violations();
  violations.addIf('workflow_batch_id', idProblem(workflowBatchId));
  checkRequestId(requestId, violations);
  const spec = workflowBatch?.spec ?? create(WorkflowBatchSpecSchema);
  checkBatchSpec('workflow_batch.spec', spec, violations);
  violations.throwIfAny();
  const batchId = asBatchId(workflowBatchId);
  const key = batchKey(batchId);
  const made = await readRecord(deps.store, schema, key);
  if (made !== undefined) return sameBatch(deps, made, requestId);
  const hosts = await selectHosts(deps, 'workflow_batch.spec', spec);
  await refuseAboveLimit(deps);
  const templateId = requireName('templates', spec.template, 'workflow_batch.spec.template');
  const templateDigest = await readTemplateDigest(deps.store, templateId);
  const record = newBatch(deps, request, spec, hosts, templateDigest);
  checkSize(record, hosts.length);
  if (validateOnly === true) return present(deps, record, 0);
  const written = await writeRecord(deps, schema, key, record, 'absent');
  if (written.kind === 'conflict') {
    return sameBatch(deps, await existing(deps, batchId), requestId);
  }
  deps.log.info(
    { batch: `workflowBatches/${workflowBatchId}`, actor: deps.actor },
    'batch created',
  );
  return reconciledBatch(deps, batchId);
}

function newBatch(
  deps: RpcDependencies,
  { workflowBatchId, requestId }: CreateWorkflowBatchRequest,
  spec: WorkflowBatchSpec,
  hosts: readonly SelectedHost[],
  templateDigest: string,
): wire.WorkflowBatchRecord {
  return create(schema, {
    workflowBatch: {
      name: `workflowBatches/${workflowBatchId}`,
      uid: randomId(deps.random),
      createTime: timestampFromMs(deps.clock.nowMs()),
      spec: clone(WorkflowBatchSpecSchema, spec),
      status: { hosts: hosts.map(({ name }) => ({ host: name, state: WorkflowRunState.PENDING })) },
    },
    hostUids: hosts.map(({ uid }) => uid),
    hostUses: hosts.map(({ use }) => use),
    requestIds: withApplied([], appliedId(createMethod, requestId)),
    createdBy: deps.actor,
    templateDigest,
  });
}

/** The record grows while the batch runs, and must fit until its end. */
function checkSize(record: wire.WorkflowBatchRecord, hosts: number): void {
  const bytes = toBinary(schema, record).byteLength + hosts * bytesPerHostMax;
  if (bytes <= VALUE_BYTES_MAX) return;
  const description = `selects ${hosts} hosts, whose report would not fit; make several batches`;
  throw invalidArgument([{ field: 'workflow_batch.spec.hosts', description }]);
}

async function refuseAboveLimit({ store }: RpcDependencies): Promise<void> {
  const { entries } = await orUnavailable(store.list('workflowBatches'));
  if (entries.length < batchesMax) return;
  const count = entries.length;
  const message = `There are ${count} batches; at most ${batchesMax} are kept. Delete some.`;
  throw failedPrecondition('TOO_MANY_BATCHES', message);
}

/** The batch that an earlier try of the same request made; any other one is a conflict. */
function sameBatch(
  deps: RpcDependencies,
  { record, revision }: { record: wire.WorkflowBatchRecord; revision: StoreRevision },
  requestId: RequestId,
): WorkflowBatch {
  const id = appliedId(createMethod, requestId);
  if (hasApplied(record, id)) return present(deps, record, revision);
  throw alreadyExists(`${record.workflowBatch?.name ?? ''} exists already.`);
}

async function reconciledBatch(deps: RpcDependencies, batchId: BatchId): Promise<WorkflowBatch> {
  const after = await deps.batches.reconcile(batchId);
  if (after === undefined) throw notFound(`workflowBatches/${batchId}`);
  return present(deps, after.record, after.revision);
}

/**
 * A finished batch stays as it ended. A batch is cancelled once, and once more by who may end runs
 * that the first one may not.
 */
async function cancelBatch(
  deps: RpcDependencies,
  { name, reason, requestId }: CancelWorkflowBatchRequest,
): Promise<WorkflowBatch> {
  const violations = new Violations();
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const batchId = requireBatchName(name);
  return untilWritten(name, async () => {
    const { record, revision } = await existing(deps, batchId);
    const next = clone(schema, record);
    const at = timestampFromMs(deps.clock.nowMs());
    const { actor, mayEndOthersUse = false } = requester(deps, 'cancelWorkflowBatch', requestId);
    next.cancelled = create(AbortSchema, { by: actor, reason, at });
    next.cancelledByAdmin = mayEndOthersUse;
    const isEnough = record.cancelled !== undefined && (endsAll(record) || !endsAll(next));
    if (isBatchEnded(record) || isEnough) return reconciledBatch(deps, batchId);
    if (equals(schema, record, next)) return reconciledBatch(deps, batchId);
    const written = await writeRecord(deps, schema, batchKey(batchId), next, revision);
    return written.kind === 'ok' ? reconciledBatch(deps, batchId) : undefined;
  });
}

/** Whether no host refuses who has cancelled it: its runs are their own, or they may end any. */
function endsAll({ cancelled, cancelledByAdmin, createdBy }: wire.WorkflowBatchRecord): boolean {
  return cancelledByAdmin || cancelled?.by === createdBy;
}

/** Its pending runs are deleted with it: the workflow loop starts nothing without its owner. */
async function deleteBatch(
  deps: RpcDependencies,
  { name, etag }: DeleteWorkflowBatchRequest,
): Promise<WorkflowBatch> {
  const batchId = requireBatchName(name);
  return untilWritten(name, async () => {
    const { record, revision } = await existing(deps, batchId);
    checkEtag(deps.store, etag, revision, name);
    const gone = await deleteRecord(deps, storeKey('workflowBatches', batchId), revision);
    if (gone.kind === 'conflict') return undefined;
    deps.log.info({ batch: name, actor: deps.actor }, 'batch deleted');
    return present(deps, record, revision);
  });
}
