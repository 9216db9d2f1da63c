/** Workflows and their runs for people: the record joined with data of the host. */
import { clone, create } from '@bufbuild/protobuf';
import {
  asWorkflowRunNumber,
  asWorkflowUid,
  type Host,
  NotRunnableKind,
  type Run,
  RunSchema,
  type Workflow,
  type WorkflowRun,
  WorkflowRunSchema,
  WorkflowSchema,
  WorkflowStatusSchema,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { readRecord } from '../records/index.ts';
import { hostRunFor, isHostRunFor, presentRun } from './decide.ts';
import { finishedRunKey, type WorkflowId, workflowRunName } from './names.ts';
import { hostRunOf, isOpen, latestRun, withHostRun } from './record.ts';
import { type NotRunnable, renderRun } from './rendering.ts';
import { readTemplate } from './templates/index.ts';

/** The dependencies of a view. */
export interface ViewSource {
  readonly store: StateStore;
}

/** Whether the record belongs to this particular host, and not to an earlier one of its name. */
export function belongsTo(record: wire.WorkflowRecord, host: Host | undefined): boolean {
  return host !== undefined && record.workflow?.status?.hostUid === host.uid;
}

/** The workflow with its latest run and what keeps it from running; the caller adds the etag. */
export async function presentWorkflow(
  source: ViewSource,
  id: WorkflowId,
  record: wire.WorkflowRecord,
  host: wire.HostRecord | undefined,
): Promise<Workflow> {
  const { workflow } = record;
  const shown = workflow === undefined ? create(WorkflowSchema) : clone(WorkflowSchema, workflow);
  shown.status ??= create(WorkflowStatusSchema);
  const latest = latestRun(record);
  if (latest !== undefined) shown.status.run = await presentRunOf(source.store, latest, host);
  const not = await whyNotRunnable(source, id, record, host?.host);
  shown.status.notRunnable = not?.text ?? '';
  shown.status.notRunnableKind = not?.why ?? NotRunnableKind.UNSPECIFIED;
  return shown;
}

/** A run with the host's run for it, where that is known. */
export async function presentRunOf(
  store: StateStore,
  run: WorkflowRun,
  host: wire.HostRecord | undefined,
): Promise<WorkflowRun> {
  const carrier = hostRunFor(run, host, []) ?? (await finishedRun(store, run, host));
  if (carrier === undefined) return withoutCarrier(run);
  if (isOpen(run)) return withHostRun(run, carrier);
  // A run that has ended here stays as it ended (R7): the host's run only adds its steps.
  const shown = clone(WorkflowRunSchema, run);
  shown.run = carrier;
  return shown;
}

function withoutCarrier(run: WorkflowRun): WorkflowRun {
  const shown = clone(WorkflowRunSchema, run);
  if (hostRunOf(run) === 0n) delete shown.run;
  else shown.run = create(RunSchema, { number: hostRunOf(run) });
  return shown;
}

async function finishedRun(
  store: StateStore,
  run: WorkflowRun,
  host: wire.HostRecord | undefined,
): Promise<Run | undefined> {
  const number = hostRunOf(run);
  const uid = host?.host?.uid ?? '';
  if (number === 0n || uid === '' || presentRun(host)?.number === number) return undefined;
  const key = finishedRunKey(uid, number);
  const kept = await readRecord(store, wire.FinishedRunRecordSchema, key);
  const found = kept?.record.run;
  return found !== undefined && isHostRunFor(found, run) ? found : undefined;
}

/** Why it cannot be run now; undefined: it can. */
async function whyNotRunnable(
  source: ViewSource,
  id: WorkflowId,
  { workflow }: wire.WorkflowRecord,
  host: Host | undefined,
): Promise<NotRunnable | undefined> {
  if (host === undefined) {
    return { why: NotRunnableKind.NO_HOST, text: `hosts/${id.hostId} does not exist` };
  }
  const facts = await readRecord(source.store, wire.HostFactsSchema, storeKey('facts', id.hostId));
  const number = asWorkflowRunNumber((workflow?.status?.runCount ?? 0n) + 1n);
  const name = workflowRunName(id, number);
  const variables = workflow?.spec?.variables ?? {};
  const template = await readTemplate(source.store, id.templateId);
  const next = { name, number, variables, workflowUid: workflow?.uid ?? asWorkflowUid('') };
  const rendering = renderRun(id.templateId, template, host, facts?.record, next);
  return rendering.kind === 'bad' ? rendering : undefined;
}
