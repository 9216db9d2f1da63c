/** Workflow runs that are planned before they are started, and started by their plan. */
import { create } from '@bufbuild/protobuf';
import {
  asWorkflowRunNumber,
  asWorkflowUid,
  type Host,
  type HostId,
  hostRefused,
  type RequestId,
  WorkflowSpecSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import type { Requester } from '../host/index.ts';
import {
  hasApplied,
  orUnavailable,
  readableRecordOf,
  untilWritten,
  writeRecord,
} from '../records/index.ts';
import { refusalOfStart, type StartRefusal } from './holder.ts';
import type { ReconciledWorkflow } from './loop.ts';
import { type WorkflowId, workflowKey, workflowName, workflowRunName } from './names.ts';
import { type RequestDependencies, readWorkflow } from './read.ts';
import { acceptRun, type PlanToStart } from './record.ts';
import { type Rendering, renderRun } from './rendering.ts';
import { newWorkflow, orderOf, refuseStart, startOrTakeBack } from './requests.ts';
import { readTemplate } from './templates/index.ts';

type Variables = Readonly<Record<string, string>>;

/** The prediction of a workflow's next run. */
export interface NextRun {
  /** The order to the host, or why the template does not fit it. */
  render(host: Host, facts: wire.HostFacts): Rendering;
  /** It would not be started now, apart from the host's own reasons; undefined: it would. */
  readonly refusal: StartRefusal | undefined;
}

/** Predicts the next run, of a workflow that may not exist yet. Throws `notFound`. */
export async function nextRun(
  deps: RequestDependencies,
  id: WorkflowId,
  variables: Variables,
): Promise<NextRun> {
  const { kept, host } = await readWorkflow(deps, id);
  const spec = create(WorkflowSpecSchema);
  const base = kept?.record ?? (await newWorkflow(deps, id, spec, host));
  const number = asWorkflowRunNumber((base.workflow?.status?.runCount ?? 0n) + 1n);
  const name = workflowRunName(id, number);
  const template = await readTemplate(deps.store, id.templateId);
  return {
    render: (rendered, facts) =>
      renderRun(id.templateId, template, rendered, facts, {
        name,
        number,
        variables: { ...variables },
        workflowUid: base.workflow?.uid ?? asWorkflowUid(''),
      }),
    refusal: refusalOfSwitch(kept, id) ?? (await refusalOfStart(deps.store, id, host)),
  };
}

/** Starts the next run by its plan, which the host compares in the pass that starts it. */
export async function startPlanned(
  deps: RequestDependencies,
  id: WorkflowId,
  variables: Variables,
  by: Requester,
  plan: PlanToStart,
): Promise<ReconciledWorkflow> {
  return untilWritten(workflowName(id), async () => {
    const { kept, host, expectedRevision } = await readWorkflow(deps, id);
    if (kept !== undefined && hasApplied(kept.record, by.requestId)) return kept;
    const off = refusalOfSwitch(kept, id);
    if (off !== undefined) {
      throw hostRefused(off.reason, off.message, `hosts/${id.hostId}`);
    }
    await refuseStart(deps.store, id, host);
    const spec = create(WorkflowSpecSchema, { variables: { ...variables } });
    const base = kept?.record ?? (await newWorkflow(deps, id, spec, host));
    const order = { ...(await orderOf(deps, id, base, host, by, plan)), variables };
    const next = acceptRun(base, id, order, deps.clock.nowMs());
    const schema = wire.WorkflowRecordSchema;
    const written = await writeRecord(deps, schema, workflowKey(id), next, expectedRevision);
    if (written.kind !== 'ok') return undefined;
    return startOrTakeBack(deps, id, next, by.requestId, { isNew: kept === undefined });
  });
}

/** Whether a request with this id has started a run of one of the host's workflows. */
export async function wasStartedBy(
  deps: Pick<RequestDependencies, 'store'>,
  hostId: HostId,
  requestId: RequestId,
): Promise<boolean> {
  const { entries } = await orUnavailable(deps.store.list(storeKey('workflows', hostId)));
  return entries.some((entry) =>
    hasApplied(readableRecordOf(deps, wire.WorkflowRecordSchema, entry), requestId),
  );
}

function refusalOfSwitch(
  kept: ReconciledWorkflow | undefined,
  id: WorkflowId,
): StartRefusal | undefined {
  if (kept?.record.workflow?.spec?.disabled !== true) return undefined;
  const enable = `rackwright workflow enable ${id.hostId} ${id.templateId}`;
  const message = `${workflowName(id)} is disabled; enable it first: ${enable}`;
  return { reason: 'workflowDisabled', message };
}
