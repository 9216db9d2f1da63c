/** WorkflowService: templates bound to hosts, and their runs. */
import { create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type BoundService,
  bind,
  type CreateWorkflowRequest,
  invalidArgument,
  notFound,
  type RequestId,
  type UpdateWorkflowRequest,
  type Workflow,
  type WorkflowRun,
  WorkflowRunSchema,
  WorkflowRunState,
  WorkflowSchema,
  WorkflowService,
  WorkflowSpecSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { applyMask, maskPaths } from '../../call/field-mask.ts';
import { nameProblem, requireName } from '../../call/names.ts';
import { type RpcDependencies, requester } from '../../call/ports.ts';
import { checkEtag, formatPosition } from '../../call/position.ts';
import { checkReason, checkRequestId } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import { appliedId, readRecord } from '../../records/index.ts';
import {
  cancelWorkflow,
  changeWorkflow,
  createWorkflow,
  deleteWorkflow,
  draftOf,
  existingWorkflow,
  explainAwaited,
  explainWorkflow,
  keptRuns,
  latestRun,
  parseWorkflowRunName,
  presentRunOf,
  presentWorkflow,
  type ReconciledWorkflow,
  runWorkflow,
  type WorkflowId,
  withRequester,
} from '../index.ts';
import { readTemplateDigest } from '../templates/index.ts';
import { listWorkflowRuns, listWorkflows } from './list-workflows.ts';
import { createStepOutputReader } from './step-output.ts';
import {
  checkWorkflowSpec,
  requireWorkflowName,
  workflowIdProblem,
  workflowNameProblem,
  workflowPaths,
} from './workflow-spec.ts';

/** The service over these dependencies. */
export function createWorkflowService(deps: RpcDependencies): BoundService {
  return bind(WorkflowService, {
    createWorkflow: (request) => createFrom(deps, request),
    getWorkflow: async ({ name }) => {
      const id = requireWorkflowName(name);
      return shown(deps, id, await existingWorkflow(deps, id));
    },
    listWorkflows: (request) => listWorkflows(deps, request),
    updateWorkflow: (request) => updateWorkflow(deps, request),
    deleteWorkflow: async ({ name, etag, requestId }) => {
      const id = checkedCall({ name, requestId });
      const applied = appliedId('deleteWorkflow', requestId) ?? '';
      const gone = await deleteWorkflow(deps, id, applied, ({ revision }) =>
        checkEtag(deps.store, etag, revision, name),
      );
      return shown(deps, id, gone);
    },
    runWorkflow: async ({ name, planHash, requestId }) => {
      const id = checkedCall({ name, requestId });
      checkPlanHash(planHash);
      const by = requester(deps, 'runWorkflow', requestId);
      return shown(deps, id, await runWorkflow(deps, id, by, planHash));
    },
    cancelWorkflow: async ({ name, reason, requestId }) => {
      const id = checkedCall({ name, requestId, reason });
      const by = requester(deps, 'cancelWorkflow', requestId);
      return shown(deps, id, await cancelWorkflow(deps, id, reason, by));
    },
    getWorkflowRun: ({ name }) => getRun(deps, name),
    listWorkflowRuns: (request) => listWorkflowRuns(deps, request),
    explainWorkflow: async ({ name }) => {
      const id = requireWorkflowName(name);
      const awaited = await explainAwaited(deps, id);
      // A host that waits for a slot has no run of it yet, or an old finished one.
      if (awaited !== undefined) return awaited;
      return explainWorkflow(deps, id, await existingWorkflow(deps, id));
    },
    readStepOutput: createStepOutputReader(deps),
  });
}

interface Call {
  readonly name: string;
  readonly requestId: RequestId;
  readonly reason?: string;
}

function checkedCall({ name, requestId, reason = '' }: Call): WorkflowId {
  const violations = new Violations();
  violations.addIf('name', workflowNameProblem(name));
  checkRequestId(requestId, violations);
  checkReason('reason', reason, violations);
  violations.throwIfAny();
  return requireWorkflowName(name);
}

function checkPlanHash(planHash: string): void {
  if (planHash === '' || /^[0-9a-f]{64}$/.test(planHash)) return;
  const description = 'must be the whole hash of a plan, 64 hex digits, or empty';
  throw invalidArgument([{ field: 'plan_hash', description }]);
}

async function createFrom(
  deps: RpcDependencies,
  request: CreateWorkflowRequest,
): Promise<Workflow> {
  const { parent, workflowId, workflow, validateOnly = false, requestId } = request;
  const violations = new Violations();
  violations.addIf('parent', nameProblem('hosts', parent));
  violations.addIf('workflow_id', workflowIdProblem(workflowId));
  checkRequestId(requestId, violations);
  const spec = workflow?.spec ?? create(WorkflowSpecSchema);
  checkWorkflowSpec('workflow.spec', spec, violations);
  const name = workflow?.name ?? '';
  if (name !== '' && name !== `${parent}/workflows/${workflowId}`) {
    violations.add('workflow.name', 'must be that of parent and workflow_id, or empty');
  }
  violations.throwIfAny();
  const hostId = requireName('hosts', parent, 'parent');
  const id = {
    hostId,
    templateId: requireName('templates', `templates/${workflowId}`, 'workflow_id'),
  };
  const by = requester(deps, 'createWorkflow', requestId);
  return shown(deps, id, await createWorkflow(deps, id, spec, by, validateOnly));
}

async function updateWorkflow(
  deps: RpcDependencies,
  request: UpdateWorkflowRequest,
): Promise<Workflow> {
  const { workflow: wanted, validateOnly, requestId } = request;
  if (wanted === undefined) {
    const description = 'is missing; give its name and what changes';
    throw invalidArgument([{ field: 'workflow', description }]);
  }
  const id = requireWorkflowName(wanted.name, 'workflow.name');
  const templateDigest = await readTemplateDigest(deps.store, id.templateId);
  const change = ({ record, revision }: ReconciledWorkflow) => {
    checkEtag(deps.store, wanted.etag, revision, wanted.name);
    return updated({ ...deps, templateDigest }, record, request, wanted);
  };
  if (validateOnly === true) {
    const kept = await existingWorkflow(deps, id);
    return shown(deps, id, { ...kept, record: change(kept) });
  }
  const applied = appliedId('updateWorkflow', requestId) ?? '';
  return shown(deps, id, await changeWorkflow(deps, id, applied, change));
}

interface UpdatedBy extends Pick<RpcDependencies, 'actor' | 'clock'> {
  /** The digest of the template's source that the caller permits to start. */
  readonly templateDigest: string;
}

/**
 * A pending run gets the new variables: it was not started with the old ones. It is one of who has
 * last changed what it starts with, or let it start: the host judges what that caller may do.
 */
function updated(
  { actor, clock, templateDigest }: UpdatedBy,
  record: wire.WorkflowRecord,
  { updateMask, requestId }: UpdateWorkflowRequest,
  wanted: Workflow,
): wire.WorkflowRecord {
  const { draft, workflow } = draftOf(record);
  const before = latestRun(record);
  const wasDisabled = workflow.spec?.disabled ?? false;
  const violations = new Violations();
  const paths = maskPaths(WorkflowSchema, updateMask, wanted, workflowPaths, violations);
  applyMask(WorkflowSchema, workflow, wanted, paths);
  checkWorkflowSpec('workflow.spec', workflow.spec ?? create(WorkflowSpecSchema), violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  if (paths.length > 0) workflow.updateTime = timestampFromMs(clock.nowMs());
  const run = latestRun(draft);
  if (run?.state !== WorkflowRunState.PENDING || draft.ownerUid !== '') return draft;
  run.variables = { ...workflow.spec?.variables };
  const isSame = before !== undefined && equals(WorkflowRunSchema, before, run);
  if (isSame && wasDisabled === (workflow.spec?.disabled ?? false)) return draft;
  return withRequester(draft, actor, templateDigest);
}

async function getRun(deps: RpcDependencies, name: string): Promise<WorkflowRun> {
  const named = parseWorkflowRunName(name);
  if (named === undefined) {
    const wanted = 'must name a run, as in "hosts/h1/workflows/set-clock/runs/3"';
    throw invalidArgument([{ field: 'name', description: `is ${quote(name)}; it ${wanted}` }]);
  }
  const { record, host } = await existingWorkflow(deps, named);
  const run = keptRuns(record).find(({ number }) => number === named.number);
  if (run === undefined) throw notFound(name);
  return presentRunOf(deps.store, run, host);
}

async function shown(
  deps: RpcDependencies,
  id: WorkflowId,
  kept: ReconciledWorkflow,
): Promise<Workflow> {
  const key = storeKey('hosts', id.hostId);
  const host = await readRecord(deps.store, wire.HostRecordSchema, key);
  return present(deps, id, kept, host?.record);
}

async function present(
  deps: RpcDependencies,
  id: WorkflowId,
  { record, revision }: ReconciledWorkflow,
  host: wire.HostRecord | undefined,
): Promise<Workflow> {
  const workflow = await presentWorkflow(deps, id, record, host);
  workflow.etag = formatPosition(deps.store, revision);
  return workflow;
}
