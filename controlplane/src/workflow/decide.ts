/**
 * What shall happen to a workflow now: one pure function over its record, its host, its template
 * and the time (the shape of `host/machine.ts`, far smaller).
 *
 * Invariants:
 * 1. What is gone takes along what has not started: a pending run whose host, use of the host, or
 *    batch is gone never starts (DESIGN §6).
 * 2. A run that the host carries already is never started again: the host's own record is looked at
 *    before anything is ordered.
 * 3. A pending run ends by its stored deadline, whatever it waits for.
 */
import { equals } from '@bufbuild/protobuf';
import {
  type Run,
  type RunNumber,
  RunPhase,
  type WorkflowRun,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { heldBy, isInUseOf, type PendingWait } from '../host/index.ts';
import { parseWorkflowRunName, type WorkflowId, workflowName } from './names.ts';
import {
  dropRuns,
  endedAs,
  endedBy,
  hasPassed,
  hostRunOf,
  latestRun,
  started,
  waitFor,
} from './record.ts';
import type { Rendering, StartOrder } from './rendering.ts';

/** What a decision follows from, beside the workflow itself. */
export interface DecisionContext {
  readonly nowMs: number;
  /** Undefined: there is no such host. */
  readonly host: wire.HostRecord | undefined;
  /** Runs of this host that have ended and are not the present one any more. */
  readonly finished: readonly Run[];
  /** The batch that owns the latest run is gone. */
  readonly ownerGone: boolean;
  /** The template rendered for the latest run; looked at only when that is about to start. */
  readonly render: () => Rendering;
}

export type Action =
  | { readonly kind: 'none' }
  /** The host is gone: nothing of it is anybody's. */
  | { readonly kind: 'remove' }
  | { readonly kind: 'write'; readonly record: wire.WorkflowRecord }
  /** Ask the host; it answers a repeated order with the same run. */
  | { readonly kind: 'start'; readonly order: StartOrder }
  /** The host carries a run that nobody wants any more. */
  | { readonly kind: 'abort'; readonly hostRun: RunNumber; readonly reason: string }
  /**
   * The host has changed hands since the pending run was asked for: that goes, and the host's
   * timeline says so. `record`: the workflow without it; undefined: the workflow goes with it.
   */
  | {
      readonly kind: 'orphan';
      readonly number: bigint;
      readonly record: wire.WorkflowRecord | undefined;
    }
  /** Put the end of a run that never started into the host's timeline. */
  | { readonly kind: 'tell'; readonly number: bigint };

const none: Action = { kind: 'none' };

export function decide(
  record: wire.WorkflowRecord,
  id: WorkflowId,
  around: DecisionContext,
): Action {
  const { host } = around;
  const hostUid = record.workflow?.status?.hostUid ?? '';
  if (host?.host === undefined || host.host.uid !== hostUid) return { kind: 'remove' };
  const unwanted = unwantedRun(record, id, host);
  if (unwanted !== undefined) return unwanted;
  const [untold] = record.untoldRuns;
  if (untold !== undefined) return { kind: 'tell', number: untold };
  switch (latestRun(record)?.state) {
    case WorkflowRunState.PENDING:
      return ofPending(record, id, around, host);
    case WorkflowRunState.RUNNING:
      return ofRunning(record, around, host);
    default:
      return none;
  }
}

/** The run under way on the host, or the one that ended last. */
export function presentRun(host: wire.HostRecord | undefined): Run | undefined {
  return host?.host?.status?.run;
}

/** The run of the host that carries this run, of this very workflow, where one is known. */
export function carrierOf(
  run: Pick<WorkflowRun, 'name' | 'workflowUid'>,
  host: wire.HostRecord | undefined,
  finished: readonly Run[],
): Run | undefined {
  const present = presentRun(host);
  const known = [...(present === undefined ? [] : [present]), ...(host?.finishedRuns ?? [])];
  return [...known, ...finished].find((each) => carries(each, run));
}

/** Runs from before uids were noted are known by their names. */
export function carries(
  { workflowRun, workflowUid }: Run,
  { name, workflowUid: wanted }: Pick<WorkflowRun, 'name' | 'workflowUid'>,
): boolean {
  return workflowRun === name && (workflowUid === wanted || workflowUid === '' || wanted === '');
}

/**
 * A run that was cancelled or timed out here while the host accepted it. Both are possible only
 * between two writes; that it was not wanted any more goes before.
 */
function unwantedRun(
  record: wire.WorkflowRecord,
  id: WorkflowId,
  host: wire.HostRecord,
): Action | undefined {
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
  around: DecisionContext,
  host: wire.HostRecord,
): Action {
  const run = latestRun(record);
  if (run === undefined) return none;
  const carrier = carrierOf(run, host, around.finished);
  if (carrier !== undefined) return write(record, started(record, carrier));
  if (around.ownerGone) return withoutPending(record);
  if (!isInUseOf(host, record.ownerUse)) return orphaned(record, run.number);
  if (hasPassed(run.deadline, around.nowMs)) {
    const waited = run.waiting === undefined ? '' : `; it waited: ${run.waiting.message}`;
    const message = `it was pending for as long as it may, and never started${waited}`;
    const failure = { type: 'pendingTimeout', message } as const;
    const { TIMED_OUT } = WorkflowRunState;
    return write(record, endedBy(record, TIMED_OUT, failure, around.nowMs));
  }
  const wait = (reason: PendingWait, message: string): Action =>
    write(record, waitFor(record, reason, message, around.nowMs));
  if (record.workflow?.spec?.disabled === true) {
    return wait('disabled', `${workflowName(id)} is disabled; enable it to let this run start`);
  }
  const rendering = around.render();
  if (rendering.kind === 'bad') return wait('template', rendering.text);
  // Without the step that it is at: this would be written with each of them.
  const held = holderText(host)?.replace(/ \(at [^)]*\)/, '');
  if (held !== undefined) return wait('run', held);
  return { kind: 'start', order: rendering.order };
}

/** The run goes; a workflow that its batch made only for this run goes with it. */
function withoutPending(record: wire.WorkflowRecord): Action {
  const run = latestRun(record);
  if (run === undefined) return none;
  const next = dropRuns(record, new Set([run.number]));
  return isMadeForRun(record) ? { kind: 'remove' } : write(record, next);
}

/** A workflow that a person made stays theirs: only its run is of a use of the host. */
function orphaned(record: wire.WorkflowRecord, number: bigint): Action {
  const goes = record.ownerUid !== '' && isMadeForRun(record);
  const next = goes ? undefined : dropRuns(record, new Set([number]));
  return { kind: 'orphan', number, record: next };
}

/** Whether nobody made the workflow before this run was wanted, and nothing else of it is kept. */
function isMadeForRun(record: wire.WorkflowRecord): boolean {
  const { workflow } = record;
  const run = latestRun(record);
  if (run === undefined || record.earlierRuns.length > 0) return false;
  const [made, asked] = [workflow?.createTime, run.createTime];
  return made?.seconds === asked?.seconds && made?.nanos === asked?.nanos;
}

/** Who holds the host, as a refusal says it; undefined: nobody. */
export function holderText(host: wire.HostRecord): string | undefined {
  const present = presentRun(host);
  if (present === undefined || present.phase === RunPhase.ENDED) return undefined;
  const named = present.workflowRun === '' ? '' : ` (${present.workflowRun})`;
  return `${host.host?.name}: ${heldBy(present)}${named}`;
}

function ofRunning(
  record: wire.WorkflowRecord,
  around: DecisionContext,
  host: wire.HostRecord,
): Action {
  const run = latestRun(record);
  if (run === undefined) return none;
  const carrier = carrierOf(run, host, around.finished);
  if (carrier !== undefined) {
    return carrier.phase === RunPhase.ENDED ? write(record, endedAs(record, carrier)) : none;
  }
  const message =
    `nothing is known of run ${hostRunOf(run)} of ${host.host?.name}, which carried it: ` +
    'look at the host before it is run again';
  return write(
    record,
    endedBy(record, WorkflowRunState.FAILED, { type: 'lost', message }, around.nowMs),
  );
}

/** R2: what would be the same is not written. */
function write(before: wire.WorkflowRecord, record: wire.WorkflowRecord): Action {
  return equals(wire.WorkflowRecordSchema, before, record) ? none : { kind: 'write', record };
}
