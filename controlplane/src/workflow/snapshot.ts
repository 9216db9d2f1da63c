/** Reads the inputs of a decision about one workflow. */
import {
  batchOfActor,
  type HostUid,
  type Run,
  readActor,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { readPlan } from '../plan/index.ts';
import { orUnavailable, type RecordReader, readableOnce, readShared } from '../records/index.ts';
import { hasSlot } from './batch-rules.ts';
import { presentRun, type WorkflowSnapshot } from './decide.ts';
import { batchKey, type WorkflowId } from './names.ts';
import { isOpen, latestRun } from './record.ts';
import { type Rendering, renderRun } from './rendering.ts';
import { readTemplate } from './templates/index.ts';

/** The dependencies of reading them. */
export interface WorkflowSnapshotSource extends RecordReader {
  readonly store: StateStore;
  readonly clock: { nowMs(): number };
}

export async function readWorkflowSnapshot(
  deps: WorkflowSnapshotSource,
  record: wire.WorkflowRecord,
  id: WorkflowId,
): Promise<WorkflowSnapshot & { readonly hostRevision: number }> {
  const { store } = deps;
  // The owner first: a new one of the same name is a different one, by its uid.
  const ownerGone = await isOwnerGone(store, record);
  const [kept, facts, template] = await Promise.all([
    readShared(store, wire.HostRecordSchema, storeKey('hosts', id.hostId)),
    readShared(store, wire.HostFactsSchema, storeKey('facts', id.hostId)),
    readTemplate(store, id.templateId),
  ]);
  const run = latestRun(record);
  const host = kept?.record.host;
  const plan = isOpen(run) ? await planOf(deps, host?.uid ?? '', record.planHash) : undefined;
  const elsewhere = isOpen(run) && presentRun(kept?.record)?.workflowRun !== run.name;
  const finished = elsewhere ? await finishedRuns(deps, host?.uid ?? '') : noRuns;
  return {
    nowMs: deps.clock.nowMs(),
    host: kept?.record,
    hostRevision: kept?.revision ?? 0,
    finished: finished.runs,
    unreadable: finished.unreadable,
    ownerGone,
    sourceBy: template?.sourceBy,
    render: () =>
      host === undefined || run === undefined
        ? { kind: 'bad', text: 'there is nothing to run' }
        : withPlan(renderRun(id.templateId, template, host, facts?.record, run), record, plan),
  };
}

/** A missing plan starts nothing: its content cannot be compared any more. */
function withPlan(
  rendering: Rendering,
  { planHash, planReason }: wire.WorkflowRecord,
  plan: wire.PlanRecord | undefined,
): Rendering {
  if (planHash === '' || rendering.kind === 'bad') return rendering;
  if (plan === undefined) return { kind: 'bad', text: `the plan ${planHash} is kept no more` };
  const started = { record: plan, reason: planReason };
  return { kind: 'ok', order: { ...rendering.order, plan: started } };
}

function planOf(
  source: Pick<WorkflowSnapshotSource, 'store'>,
  hostUid: HostUid,
  hash: string,
): Promise<wire.PlanRecord | undefined> {
  return hash === '' ? Promise.resolve(undefined) : readPlan(source, hostUid, hash);
}

async function isOwnerGone(store: StateStore, record: wire.WorkflowRecord): Promise<boolean> {
  const batchId = batchOfActor(readActor(latestRun(record)?.requestedBy ?? ''));
  if (batchId === undefined || !isOpen(latestRun(record))) return false;
  const kept = await readShared(store, wire.WorkflowBatchRecordSchema, batchKey(batchId));
  if (kept?.record.workflowBatch?.uid !== record.ownerUid) return true;
  // A batch that no longer wants it does not own it.
  return !hasSlot(kept.record, record.workflow?.status?.hostUid ?? '');
}

interface StoredRuns {
  readonly runs: readonly Run[];
  /** Keys of those that cannot be decoded: nothing is known of them but that they have ended. */
  readonly unreadable: ReadonlySet<string>;
}

const noRuns: StoredRuns = { runs: [], unreadable: new Set() };

/** The stored finished runs of a host. */
export async function finishedRuns(reader: RecordReader, hostUid: HostUid): Promise<StoredRuns> {
  if (hostUid === '') return noRuns;
  const { entries } = await orUnavailable(reader.store.list(storeKey('runs', hostUid)));
  const unreadable = new Set<string>();
  const runs = entries.flatMap((entry) => {
    const record = readableOnce(reader, wire.FinishedRunRecordSchema, entry);
    if (record === undefined) unreadable.add(entry.key);
    return record?.run ?? [];
  });
  return { runs, unreadable };
}
