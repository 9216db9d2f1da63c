/**
 * Creating, running and changing workflows: each is a compare-and-set on one record, followed by a
 * pass, so that the response shows the result.
 *
 * Invariants:
 * 1. A run that cannot start because the host is held is refused at once, never queued silently. A
 *    run may be pending only for its template, for its switch, or as part of a batch.
 * 2. A repeated request id gets the same response and changes nothing.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  alreadyExists,
  asWorkflowUid,
  failedPrecondition,
  hostRefused,
  pendingWaitOf,
  type RequestId,
  type WorkflowRunNumber,
  WorkflowRunState,
  type WorkflowSpec,
  WorkflowSpecSchema,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import { type Requester, useOf } from '../host/index.ts';
import { isExpired, readPlan } from '../plan/index.ts';
import {
  deleteRecord,
  hasApplied,
  orUnavailable,
  untilWritten,
  writeRecord,
} from '../records/index.ts';
import { hostRunFor, presentRun } from './decide.ts';
import { refusalOfStart } from './holder.ts';
import type { ReconciledWorkflow } from './loop.ts';
import { parseWorkflowRunName, type WorkflowId, workflowKey, workflowName } from './names.ts';
import {
  existingWorkflow,
  type RequestDependencies,
  readWorkflow,
  reconciledWorkflow,
} from './read.ts';
import {
  acceptRun,
  dropRuns,
  isOpen,
  latestRun,
  type PlanToStart,
  type RunOrder,
  withRequestId,
} from './record.ts';
import { finishedRuns } from './snapshot.ts';
import { readTemplateDigest } from './templates/index.ts';

/** The most workflows of one host. */
const workflowsMax = 256;

const schema = wire.WorkflowRecordSchema;

/** The new workflow, with its first run unless it is disabled. */
export async function createWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
  spec: WorkflowSpec,
  by: Requester,
  validateOnly: boolean,
): Promise<ReconciledWorkflow> {
  const { host, kept, expectedRevision } = await readWorkflow(deps, id);
  if (kept !== undefined) return sameWorkflow(kept, id, by);
  if (!spec.disabled) await refuseStart(deps.store, id, host);
  const above = await whyAboveLimit(deps.store, id);
  if (above !== undefined) throw failedPrecondition('TOO_MANY_WORKFLOWS', above);
  const nowMs = deps.clock.nowMs();
  const made = await newWorkflow(deps, id, spec, host, nowMs);
  const record = spec.disabled
    ? withRequestId(made, by.requestId ?? '')
    : acceptRun(made, id, await orderOf(deps, id, made, host, by), nowMs);
  if (validateOnly) return { record, revision: 0 };
  const written = await writeRecord(deps, schema, workflowKey(id), record, expectedRevision);
  if (written.kind === 'conflict') return sameWorkflow(await existingWorkflow(deps, id), id, by);
  return startOrTakeBack(deps, id, record, by.requestId, { isNew: true });
}

/** The workflow with its next run; the host compares a plan in the pass that starts the run. */
export async function runWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
  by: Requester,
  planHash: string,
): Promise<ReconciledWorkflow> {
  return untilWritten(workflowName(id), async () => {
    const { record, revision, host } = await existingWorkflow(deps, id);
    if (hasApplied(record, by.requestId)) return { record, revision };
    await refuseStart(deps.store, id, host);
    await refuseUnknownPlan(deps, host, planHash);
    if (isOpen(latestRun(record))) {
      // Its host has already ended the old run: that is written before a new run replaces it.
      await reconciledWorkflow(deps, id);
      return undefined;
    }
    const plan = planHash === '' ? undefined : { hash: planHash, reason: '' };
    const order = await orderOf(deps, id, record, host, by, plan);
    const next = acceptRun(record, id, order, deps.clock.nowMs());
    const written = await writeRecord(deps, schema, workflowKey(id), next, revision);
    if (written.kind === 'conflict') return undefined;
    return startOrTakeBack(deps, id, next, by.requestId, { isNew: false });
  });
}

/** Changes the record by `change`, which throws the refusal. */
export async function changeWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
  requestId: RequestId,
  change: (kept: ReconciledWorkflow) => wire.WorkflowRecord,
): Promise<ReconciledWorkflow> {
  return untilWritten(workflowName(id), async () => {
    const kept = await existingWorkflow(deps, id);
    if (hasApplied(kept.record, requestId)) return kept;
    const next = withRequestId(change(kept), requestId);
    const written = await writeRecord(deps, schema, workflowKey(id), next, kept.revision);
    return written.kind === 'conflict' ? undefined : reconciledWorkflow(deps, id);
  });
}

/** A workflow without runs. Its numbers continue after those of a deleted workflow of its name. */
export async function newWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
  spec: WorkflowSpec,
  host: wire.HostRecord,
  nowMs = deps.clock.nowMs(),
): Promise<wire.WorkflowRecord> {
  const time = timestampFromMs(nowMs);
  const hostUid = host.host?.uid ?? '';
  return create(schema, {
    workflow: {
      name: workflowName(id),
      uid: asWorkflowUid(randomId(deps.random)),
      createTime: time,
      updateTime: time,
      spec: clone(WorkflowSpecSchema, spec),
      status: { hostUid, runCount: await numbersUsed(deps.store, id, host) },
    },
  });
}

async function numbersUsed(
  store: StateStore,
  id: WorkflowId,
  host: wire.HostRecord,
): Promise<bigint> {
  const present = presentRun(host);
  const runs = [
    ...(await finishedRuns({ store }, host.host?.uid ?? '')).runs,
    ...(present ? [present] : []),
    // Runs that were just displaced survive the deletion of their workflow there.
    ...host.finishedRuns,
  ];
  const numbers = runs
    .map(({ workflowRun }) => parseWorkflowRunName(workflowRun))
    .filter((named) => named?.hostId === id.hostId && named.templateId === id.templateId)
    .map((named) => named?.number ?? 0n);
  return numbers.reduce((most, number) => (number > most ? number : most), 0n);
}

/** A person's order for the next run. */
export async function orderOf(
  { store }: Pick<RequestDependencies, 'store'>,
  { templateId }: WorkflowId,
  { workflow }: wire.WorkflowRecord,
  host: wire.HostRecord,
  by: Requester,
  plan?: PlanToStart,
): Promise<RunOrder> {
  return {
    requestedBy: by.actor,
    actor: by.actor,
    ownerUid: '',
    variables: workflow?.spec?.variables ?? {},
    requestId: by.requestId ?? '',
    use: useOf(host),
    templateDigest: await readTemplateDigest(store, templateId),
    plan,
  };
}

async function refuseUnknownPlan(
  { store, clock }: Pick<RequestDependencies, 'store' | 'clock'>,
  { host }: wire.HostRecord,
  planHash: string,
): Promise<void> {
  if (planHash === '') return;
  const plan = await readPlan({ store }, host?.uid ?? '', planHash);
  if (plan !== undefined && !isExpired(plan, clock.nowMs())) return;
  const message = `${host?.name} has no plan ${planHash} any more; plan again`;
  throw failedPrecondition('PLAN_GONE', message, { resource: host?.name ?? '' });
}

/** Throws why no run of a workflow may begin on the host now. */
export async function refuseStart(
  store: StateStore,
  id: WorkflowId,
  host: wire.HostRecord,
): Promise<void> {
  const found = await refusalOfStart(store, id, host);
  if (found !== undefined) throw hostRefused(found.reason, found.message, `hosts/${id.hostId}`);
}

/** Why a host may not have another workflow; undefined: it may. */
export async function whyAboveLimit(
  store: StateStore,
  { hostId }: WorkflowId,
): Promise<string | undefined> {
  const { entries } = await orUnavailable(store.list(storeKey('workflows', hostId)));
  if (entries.length < workflowsMax) return undefined;
  return `hosts/${hostId} has ${entries.length} workflows; at most ${workflowsMax} are kept.`;
}

/** The workflow that an earlier try of the same request made; any other one is a conflict. */
function sameWorkflow(
  { record, revision }: ReconciledWorkflow,
  id: WorkflowId,
  by: Requester,
): ReconciledWorkflow {
  if (hasApplied(record, by.requestId)) return { record, revision };
  throw alreadyExists(
    `${workflowName(id)} exists already; run it again: ` +
      `rackwright workflow run ${id.hostId} ${id.templateId}`,
  );
}

/** A just accepted run that the host refuses is removed again: the refusal is the response. */
export async function startOrTakeBack(
  deps: RequestDependencies,
  id: WorkflowId,
  accepted: wire.WorkflowRecord,
  requestId: RequestId | undefined,
  { isNew }: { readonly isNew: boolean },
): Promise<ReconciledWorkflow> {
  const number = latestRun(accepted)?.number;
  return untilWritten(workflowName(id), async () => {
    const reconciled = await reconciledWorkflow(deps, id);
    if (refusedRun(reconciled.record, number) === undefined) return reconciled;
    // Another pass may be sending the order right now: its result counts.
    const result = await deps.workflows.oneAtATime(id, () =>
      takeBack(deps, id, { number, requestId, isNew }),
    );
    switch (result.kind) {
      case 'advanced':
      case 'conflict':
        return undefined;
      case 'takenBack':
        throw hostRefused('notNow', result.message, `hosts/${id.hostId}`);
    }
  });
}

interface AcceptedRun {
  readonly number: WorkflowRunNumber | undefined;
  readonly requestId: RequestId | undefined;
  readonly isNew: boolean;
}

/** What became of a run that was to be removed again. */
type TakeBackResult =
  /** Its host has accepted it meanwhile, or it is over: it stays. */
  | { readonly kind: 'advanced' }
  /** Another writer was first: the run may still be refused. */
  | { readonly kind: 'conflict' }
  /** It is removed; `message`: why its host refused it. */
  | { readonly kind: 'takenBack'; readonly message: string };

async function takeBack(
  deps: RequestDependencies,
  id: WorkflowId,
  { number, requestId, isNew }: AcceptedRun,
): Promise<TakeBackResult> {
  const { record, revision, host } = await existingWorkflow(deps, id);
  const run = refusedRun(record, number);
  if (run === undefined || hostRunFor(run, host, []) !== undefined) return { kind: 'advanced' };
  const key = workflowKey(id);
  const next = dropRuns(record, new Set([run.number]));
  next.requestIds = next.requestIds.filter((each) => each !== requestId);
  const written = isNew
    ? await deleteRecord(deps, key, revision)
    : await writeRecord(deps, schema, key, next, revision);
  if (written.kind === 'conflict') return { kind: 'conflict' };
  return { kind: 'takenBack', message: run.waiting?.message ?? '' };
}

/** The latest run, when it is this one and the host does not accept it now. */
function refusedRun(record: wire.WorkflowRecord, number: WorkflowRunNumber | undefined) {
  const run = latestRun(record);
  if (run?.number !== number || run?.state !== WorkflowRunState.PENDING) return undefined;
  const wait = pendingWaitOf(run.waiting);
  return wait === 'host' || wait === 'run' ? run : undefined;
}
