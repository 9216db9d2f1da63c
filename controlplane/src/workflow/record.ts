/**
 * The runs in a workflow's record, and the permitted changes of it. Pure: every change is made on a
 * copy.
 *
 * Invariants:
 * 1. A finished run never changes again; it can only be dropped.
 * 2. Run numbers rise and are never reused, also when runs are dropped.
 * 3. Only the latest run may be pending or running; the runs before it are finished.
 */
import { clone, create } from '@bufbuild/protobuf';
import { durationMs, type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  asWorkflowRunNumber,
  type FailureName,
  failureTypeOf,
  noRun,
  type PendingWait,
  pendingWaitOf,
  type RequestId,
  type Run,
  RunFailureSchema,
  type RunNumber,
  RunOutcome,
  RunPhase,
  RunSchema,
  WaitingSchema,
  type Workflow,
  type WorkflowRun,
  type WorkflowRunNumber,
  WorkflowRunSchema,
  WorkflowRunState,
  WorkflowStatusSchema,
  store as wire,
} from '@rackwright/messages';
import { withApplied } from '../records/index.ts';
import type { WorkflowId } from './names.ts';
import { workflowRunName } from './names.ts';

/** How many runs of a workflow are kept, including the latest once it is no longer pending. */
export const runsKeptMax = 10;
/** How long a run may be pending by default. */
export const pendingTimeoutDefaultMs = 3_600_000;
const messageCharsMax = 2_000;

/** Pending or running: it may still change. */
export function isOpen(run: WorkflowRun | undefined): run is WorkflowRun {
  return run?.state === WorkflowRunState.PENDING || run?.state === WorkflowRunState.RUNNING;
}

export function latestRun(record: wire.WorkflowRecord): WorkflowRun | undefined {
  return record.workflow?.status?.run;
}

/** Every stored run, newest first. */
export function keptRuns(record: wire.WorkflowRecord): WorkflowRun[] {
  const latest = latestRun(record);
  return latest === undefined ? [...record.earlierRuns] : [latest, ...record.earlierRuns];
}

/** The number of the host's run for it; 0n: none is known. */
export function hostRunOf(run: WorkflowRun): RunNumber {
  return run.run?.number ?? noRun;
}

/** A copy for changes. */
export function draftOf(record: wire.WorkflowRecord): {
  readonly draft: wire.WorkflowRecord;
  readonly workflow: Workflow;
  readonly status: NonNullable<Workflow['status']>;
} {
  const draft = clone(wire.WorkflowRecordSchema, record);
  const { workflow } = draft;
  if (workflow === undefined) throw new Error('a workflow record without workflow is none of ours');
  workflow.status ??= create(WorkflowStatusSchema);
  return { draft, workflow, status: workflow.status };
}

export interface PlanToStart {
  readonly hash: string;
  /** Why it is started, for people. */
  readonly reason: string;
}

/** The request for a run. */
export interface RunOrder {
  /** "user:NAME" or "workflowBatches/BATCH" */
  readonly requestedBy: Actor;
  /** "user:NAME" */
  readonly actor: Actor;
  /** The uid of the batch that owns it; empty: none. */
  readonly ownerUid: string;
  readonly variables: Readonly<Record<string, string>>;
  /** Empty: repeated requests cannot be recognized. */
  readonly requestId: RequestId;
  /** The use of the host at the time of the request. */
  readonly use: wire.HostUse;
  /** Of the template's source at the time of the request; empty: there was none. */
  readonly templateDigest: string;
  /** The plan to start it by; undefined: none. */
  readonly plan: PlanToStart | undefined;
}

/** The next run, pending; the previous one joins the earlier runs. */
export function acceptRun(
  record: wire.WorkflowRecord,
  id: WorkflowId,
  order: RunOrder,
  nowMs: number,
): wire.WorkflowRecord {
  const { draft, workflow, status } = draftOf(record);
  if (status.run !== undefined) {
    // One more than the bound, until it is certain that the new run is not undone.
    draft.earlierRuns = [status.run, ...draft.earlierRuns].slice(0, runsKeptMax);
  }
  status.runCount += 1n;
  const number = asWorkflowRunNumber(status.runCount);
  const timeout = workflow.spec?.pendingTimeout;
  const pendingMs = timeout === undefined ? pendingTimeoutDefaultMs : durationMs(timeout);
  status.run = create(WorkflowRunSchema, {
    name: workflowRunName(id, number),
    number,
    state: WorkflowRunState.PENDING,
    createTime: timestampFromMs(nowMs),
    deadline: timestampFromMs(nowMs + pendingMs),
    variables: { ...order.variables },
    requestedBy: order.requestedBy,
    batchUid: order.ownerUid,
    workflowUid: workflow.uid,
  });
  draft.hostRun = noRun;
  draft.actor = order.actor;
  draft.ownerUid = order.ownerUid;
  draft.ownerUse = order.use;
  draft.templateDigest = order.templateDigest;
  draft.planHash = order.plan?.hash ?? '';
  draft.planReason = order.plan?.reason ?? '';
  return withRequestId(draft, order.requestId);
}

/**
 * The pending run is one of who has changed its template to this one: the host judges what they may
 * do. A batch stays the requester of its runs.
 */
export function withRequester(
  record: wire.WorkflowRecord,
  actor: Actor,
  templateDigest: string,
): wire.WorkflowRecord {
  const { draft, status } = draftOf(record);
  if (status.run !== undefined && draft.ownerUid === '') status.run.requestedBy = actor;
  draft.actor = actor;
  draft.templateDigest = templateDigest;
  return draft;
}

/** Records a request, so that it is applied once. */
export function withRequestId(
  record: wire.WorkflowRecord,
  requestId: RequestId,
): wire.WorkflowRecord {
  if (requestId === '') return record;
  const draft = clone(wire.WorkflowRecordSchema, record);
  draft.requestIds = withApplied(draft.requestIds, requestId);
  return draft;
}

/** The pending run waits; the start time stays as long as the reason does. */
export function withWait(
  record: wire.WorkflowRecord,
  reason: PendingWait,
  message: string,
  nowMs: number,
): wire.WorkflowRecord {
  const { draft, status } = draftOf(record);
  if (status.run === undefined) return draft;
  const { waiting } = status.run;
  const since = pendingWaitOf(waiting) === reason ? waiting?.since : undefined;
  status.run.waiting = create(WaitingSchema, {
    reason,
    message: bounded(message),
    since: since ?? timestampFromMs(nowMs),
  });
  return draft;
}

/** The host has accepted the run. */
export function withStartedRun(record: wire.WorkflowRecord, carrier: Run): wire.WorkflowRecord {
  const { draft, status } = draftOf(record);
  if (status.run === undefined) return draft;
  status.run = withHostRun(status.run, carrier);
  // Its end is written in a step of its own, from the host's later state.
  status.run.state = WorkflowRunState.RUNNING;
  delete status.run.endTime;
  delete status.run.error;
  status.run.run = create(RunSchema, { number: carrier.number });
  delete status.run.waiting;
  draft.hostRun = carrier.number;
  forgetOldest(draft);
  return draft;
}

/** The run has ended like the host's run. */
export function withHostRunEnd(record: wire.WorkflowRecord, carrier: Run): wire.WorkflowRecord {
  const { draft, status } = draftOf(record);
  if (status.run === undefined) return draft;
  status.run = withHostRun(status.run, carrier);
  status.run.run = create(RunSchema, { number: carrier.number });
  draft.hostRun = carrier.number;
  return draft;
}

/** The run has ended without a run of the host that shows this. */
export function endWithState(
  record: wire.WorkflowRecord,
  state: WorkflowRunState,
  failure: { readonly type: FailureName; readonly message: string } | undefined,
  nowMs: number,
): wire.WorkflowRecord {
  const { draft, status } = draftOf(record);
  const { run } = status;
  if (run === undefined) return draft;
  const neverStarted = run.state === WorkflowRunState.PENDING;
  run.state = state;
  run.endTime = timestampFromMs(nowMs);
  delete run.waiting;
  if (failure !== undefined) {
    const { type, message } = failure;
    run.error = create(RunFailureSchema, {
      type: failureTypeOf(type),
      message: bounded(message),
    });
  }
  if (neverStarted && state === WorkflowRunState.TIMED_OUT) draft.untoldRuns.push(run.number);
  forgetOldest(draft);
  return draft;
}

/** The latest run is certain to stay: including it, the bound is applied. */
function forgetOldest(draft: wire.WorkflowRecord): void {
  draft.earlierRuns = draft.earlierRuns.slice(0, runsKeptMax - 1);
}

/** The host's timeline has the line of a run that timed out before its start. */
export function withAlert(
  record: wire.WorkflowRecord,
  number: WorkflowRunNumber,
): wire.WorkflowRecord {
  const { draft } = draftOf(record);
  draft.untoldRuns = draft.untoldRuns.filter((each) => each !== number);
  return draft;
}

/** Without these runs: the newest remaining one is the latest. */
export function dropRuns(
  record: wire.WorkflowRecord,
  numbers: ReadonlySet<bigint>,
): wire.WorkflowRecord {
  const { draft, status } = draftOf(record);
  const [latest, ...earlier] = keptRuns(draft).filter(({ number }) => !numbers.has(number));
  const replaced = latest?.number !== status.run?.number;
  delete status.run;
  if (latest !== undefined) status.run = latest;
  draft.earlierRuns = earlier;
  draft.untoldRuns = draft.untoldRuns.filter((each) => !numbers.has(each));
  if (replaced) {
    draft.hostRun = latest === undefined ? noRun : hostRunOf(latest);
    draft.ownerUid = '';
    draft.planHash = '';
    draft.planReason = '';
    draft.templateDigest = '';
  }
  return draft;
}

/** The run with data of the host's run. */
export function withHostRun(run: WorkflowRun, carrier: Run): WorkflowRun {
  const shown = clone(WorkflowRunSchema, run);
  shown.state = stateOf(carrier);
  setTime(shown, 'startTime', carrier.startTime);
  setTime(shown, 'endTime', carrier.endTime);
  setTime(shown, 'deadline', carrier.deadline);
  delete shown.waiting;
  if (carrier.waiting !== undefined) shown.waiting = carrier.waiting;
  if (carrier.error !== undefined) shown.error = carrier.error;
  shown.templateDigest = carrier.templateDigest;
  shown.run = carrier;
  return shown;
}

function setTime(
  run: WorkflowRun,
  field: 'startTime' | 'endTime' | 'deadline',
  time: Timestamp | undefined,
): void {
  if (time === undefined) delete run[field];
  else run[field] = time;
}

/** The workflow run's state for a run of the host. */
export function stateOf({ phase, outcome }: Run): WorkflowRunState {
  if (phase !== RunPhase.ENDED) return WorkflowRunState.RUNNING;
  switch (outcome) {
    case RunOutcome.SUCCEEDED:
      return WorkflowRunState.SUCCEEDED;
    case RunOutcome.TIMED_OUT:
      return WorkflowRunState.TIMED_OUT;
    case RunOutcome.CANCELLED:
      return WorkflowRunState.CANCELLED;
    // R8: an unknown outcome is no success.
    default:
      return WorkflowRunState.FAILED;
  }
}

/** Whether a stored time has come. */
export function hasPassed(time: Timestamp | undefined, nowMs: number): boolean {
  return time !== undefined && timestampMs(time) <= nowMs;
}

function bounded(text: string): string {
  return text.length <= messageCharsMax ? text : `${text.slice(0, messageCharsMax - 1)}…`;
}
