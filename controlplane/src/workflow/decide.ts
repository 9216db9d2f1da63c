/**
 * The next action for a workflow: one pure function over its record, its host, its template and the
 * time (like `host/machine.ts`, but far smaller).
 *
 * Invariants:
 * 1. A pending run never starts once its host, its use of the host, or its batch is gone (DESIGN
 *    §6).
 * 2. A run that the host already has is never started again: the host's own record is read before
 *    anything is ordered.
 * 3. A run starts in the name of who asked for these steps: another's change of the template since
 *    makes it a run of that other.
 * 4. A pending run ends at its stored deadline, whatever it waits for.
 */
import { equals } from '@bufbuild/protobuf';
import {
  type Actor,
  asWorkflowRunNumber,
  type PendingWait,
  type Run,
  type RunNumber,
  RunPhase,
  type WorkflowRun,
  type WorkflowRunNumber,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { isInUseOf, occupiedText } from '../host/index.ts';
import { finishedRunKey, parseWorkflowRunName, type WorkflowId, workflowName } from './names.ts';
import {
  dropRuns,
  endWithState,
  hasPassed,
  hostRunOf,
  latestRun,
  withHostRunEnd,
  withRequester,
  withStartedRun,
  withWait,
} from './record.ts';
import type { Rendering, StartOrder } from './rendering.ts';

/** What one decision about a workflow is made upon, besides the workflow itself. */
export interface WorkflowSnapshot {
  readonly nowMs: number;
  /** Undefined: the host does not exist. */
  readonly host: wire.HostRecord | undefined;
  /** Finished runs of this host that are no longer its present one. */
  readonly finished: readonly Run[];
  /** Keys of further ones that cannot be decoded. */
  readonly unreadable: ReadonlySet<string>;
  /** The batch that owns the latest run is gone. */
  readonly ownerGone: boolean;
  /** Who has last changed the template's source; undefined: unknown, or nobody. */
  readonly sourceBy: Actor | undefined;
  /** The template rendered for the latest run; read only when the run is about to start. */
  readonly render: () => Rendering;
}

export type WorkflowAction =
  | { readonly kind: 'none' }
  /** The host is gone: so is everything of it. */
  | { readonly kind: 'remove' }
  | { readonly kind: 'write'; readonly record: wire.WorkflowRecord }
  /** Send the order to the host; a repeated order gives the same run. */
  | { readonly kind: 'start'; readonly order: StartOrder }
  /** The host has a run that is no longer wanted. */
  | { readonly kind: 'abort'; readonly hostRun: RunNumber; readonly reason: string }
  /**
   * The host's use has changed since the pending run was requested: the run is removed, and the
   * host's timeline says so. `record`: the workflow without it; undefined: the workflow is removed
   * with it.
   */
  | {
      readonly kind: 'orphan';
      readonly number: WorkflowRunNumber;
      readonly record: wire.WorkflowRecord | undefined;
    }
  /** Write the end of a run that never started into the host's timeline. */
  | { readonly kind: 'noteTimeout'; readonly number: WorkflowRunNumber };

const none: WorkflowAction = { kind: 'none' };

export function decideWorkflow(
  record: wire.WorkflowRecord,
  id: WorkflowId,
  snapshot: WorkflowSnapshot,
): WorkflowAction {
  const { host } = snapshot;
  const hostUid = record.workflow?.status?.hostUid ?? '';
  if (host?.host === undefined || host.host.uid !== hostUid) return { kind: 'remove' };
  const unwanted = unwantedRun(record, id, host);
  if (unwanted !== undefined) return unwanted;
  const [untold] = record.untoldRuns;
  if (untold !== undefined) return { kind: 'noteTimeout', number: asWorkflowRunNumber(untold) };
  switch (latestRun(record)?.state) {
    case WorkflowRunState.PENDING:
      return ofPending(record, id, snapshot, host);
    case WorkflowRunState.RUNNING:
      return ofRunning(record, snapshot, host);
    default:
      return none;
  }
}

/** The present run of the host, or the one that ended last. */
export function presentRun(host: wire.HostRecord | undefined): Run | undefined {
  return host?.host?.status?.run;
}

/** The host's run for this workflow run, of this particular workflow, where its uid is known. */
export function hostRunFor(
  run: Pick<WorkflowRun, 'name' | 'workflowUid'>,
  host: wire.HostRecord | undefined,
  finished: readonly Run[],
): Run | undefined {
  const present = presentRun(host);
  const known = [...(present === undefined ? [] : [present]), ...(host?.finishedRuns ?? [])];
  return [...known, ...finished].find((each) => isHostRunFor(each, run));
}

/** Runs from before uids were recorded are recognized by their names. */
export function isHostRunFor(
  { workflowRun, workflowUid }: Run,
  { name, workflowUid: wanted }: Pick<WorkflowRun, 'name' | 'workflowUid'>,
): boolean {
  return workflowRun === name && (workflowUid === wanted || workflowUid === '' || wanted === '');
}

/**
 * A run that was cancelled or timed out here while the host accepted it. Both are possible only
 * between two writes; the cancellation takes precedence.
 */
function unwantedRun(
  record: wire.WorkflowRecord,
  id: WorkflowId,
  host: wire.HostRecord,
): WorkflowAction | undefined {
  const present = presentRun(host);
  if (present === undefined || present.phase === RunPhase.ENDED) return undefined;
  const named = parseWorkflowRunName(present.workflowRun);
  if (named === undefined || present.abort !== undefined) return undefined;
  if (named.hostId !== id.hostId || named.templateId !== id.templateId) return undefined;
  const latest = latestRun(record);
  const wanted =
    latest?.number === named.number &&
    (latest.state === WorkflowRunState.PENDING || latest.state === WorkflowRunState.RUNNING);
  if (wanted) return undefined;
  const reason = 'the run of the workflow ended before it started';
  return { kind: 'abort', hostRun: present.number, reason };
}

function ofPending(
  record: wire.WorkflowRecord,
  id: WorkflowId,
  snapshot: WorkflowSnapshot,
  host: wire.HostRecord,
): WorkflowAction {
  const run = latestRun(record);
  if (run === undefined) return none;
  const carrier = hostRunFor(run, host, snapshot.finished);
  if (carrier !== undefined) return write(record, withStartedRun(record, carrier));
  if (snapshot.ownerGone) return withoutPending(record);
  if (!isInUseOf(host, record.ownerUse)) return orphaned(record, run.number);
  if (hasPassed(run.deadline, snapshot.nowMs)) {
    const waited = run.waiting === undefined ? '' : `; it waited: ${run.waiting.message}`;
    const message = `it was pending for as long as it may, and never started${waited}`;
    const failure = { type: 'pendingTimeout', message } as const;
    const { TIMED_OUT } = WorkflowRunState;
    return write(record, endWithState(record, TIMED_OUT, failure, snapshot.nowMs));
  }
  const wait = (reason: PendingWait, message: string): WorkflowAction =>
    write(record, withWait(record, reason, message, snapshot.nowMs));
  if (record.workflow?.spec?.disabled === true) {
    return wait('disabled', `${workflowName(id)} is disabled; enable it to let this run start`);
  }
  const rendering = snapshot.render();
  if (rendering.kind === 'bad') return wait('template', rendering.text);
  // Without the present step: otherwise this would be written at each step.
  const blocking = holderText(host)?.replace(/ \(at [^)]*\)/, '');
  if (blocking !== undefined) return wait('run', blocking);
  const { order } = rendering;
  return changedByAnother(record, order, snapshot, host) ?? { kind: 'start', order };
}

/**
 * The template is not the one that was asked for: whoever has changed it answers for its steps. A
 * host that they have claimed still refuses the run of somebody else.
 */
function changedByAnother(
  record: wire.WorkflowRecord,
  { templateDigest }: StartOrder,
  { sourceBy }: WorkflowSnapshot,
  { host }: wire.HostRecord,
): WorkflowAction | undefined {
  if (templateDigest === record.templateDigest) return undefined;
  if (sourceBy === undefined || sourceBy === record.actor) return undefined;
  if (host?.status?.claim?.by === sourceBy) return undefined;
  return write(record, withRequester(record, sourceBy, templateDigest));
}

/** The run is removed; a workflow that its batch made only for this run is removed with it. */
function withoutPending(record: wire.WorkflowRecord): WorkflowAction {
  const run = latestRun(record);
  if (run === undefined) return none;
  const next = dropRuns(record, new Set([run.number]));
  return isMadeForRun(record) ? { kind: 'remove' } : write(record, next);
}

/** A workflow that a person made stays: only its run depends on a use of the host. */
function orphaned(record: wire.WorkflowRecord, number: WorkflowRunNumber): WorkflowAction {
  const goes = record.ownerUid !== '' && isMadeForRun(record);
  const next = goes ? undefined : dropRuns(record, new Set([number]));
  return { kind: 'orphan', number, record: next };
}

/** Whether the workflow was made only for this run, and nothing else of it is stored. */
function isMadeForRun(record: wire.WorkflowRecord): boolean {
  const { workflow } = record;
  const run = latestRun(record);
  if (run === undefined || record.earlierRuns.length > 0) return false;
  const [made, asked] = [workflow?.createTime, run.createTime];
  return made?.seconds === asked?.seconds && made?.nanos === asked?.nanos;
}

/** Who holds the host, in the words of a refusal; undefined: nobody. */
export function holderText(host: wire.HostRecord): string | undefined {
  const present = presentRun(host);
  if (present === undefined || present.phase === RunPhase.ENDED) return undefined;
  const named = present.workflowRun === '' ? '' : ` (${present.workflowRun})`;
  return `${host.host?.name}: ${occupiedText(present)}${named}`;
}

function ofRunning(
  record: wire.WorkflowRecord,
  snapshot: WorkflowSnapshot,
  host: wire.HostRecord,
): WorkflowAction {
  const run = latestRun(record);
  if (run === undefined) return none;
  const carrier = hostRunFor(run, host, snapshot.finished);
  if (carrier !== undefined) {
    return carrier.phase === RunPhase.ENDED ? write(record, withHostRunEnd(record, carrier)) : none;
  }
  // It has ended, and how is not lost before somebody has looked at its record.
  const key = finishedRunKey(host.host?.uid ?? '', hostRunOf(run));
  if (snapshot.unreadable.has(key)) return none;
  const message =
    `nothing is known of run ${hostRunOf(run)} of ${host.host?.name}, which carried it: ` +
    'look at the host before it is run again';
  return write(
    record,
    endWithState(record, WorkflowRunState.FAILED, { type: 'lost', message }, snapshot.nowMs),
  );
}

/** R2: an unchanged record is not written. */
function write(before: wire.WorkflowRecord, record: wire.WorkflowRecord): WorkflowAction {
  return equals(wire.WorkflowRecordSchema, before, record) ? none : { kind: 'write', record };
}
