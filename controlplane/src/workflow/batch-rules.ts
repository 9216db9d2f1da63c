/**
 * The rules of a batch: which hosts have a slot, how each host ended, and when it is over. Pure.
 *
 * Invariants:
 * 1. At most `max_parallel` hosts have a slot at once, whatever was lost or repeated: slots are
 *    written into the batch before anything is started.
 * 2. A host has one slot. Its result stays, whatever happens to its workflow afterwards.
 * 3. No host gets a slot once the batch is cancelled or has reached its bound of failures.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asTemplateId,
  asWorkflowRunNumber,
  type HostName,
  type HostUid,
  type WorkflowBatch,
  type WorkflowBatchHost,
  type WorkflowBatchStatus,
  WorkflowBatchStatusSchema,
  WorkflowBatchStop,
  type WorkflowRun,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { idOf } from '../records/index.ts';
import { type WorkflowId, workflowRunName } from './names.ts';

/** The longest message about one host, in characters. */
const messageCharsMax = 100;
/** The most hosts that a text names; the rest are counted. */
const hostsNamedMax = 3;

/** The known state of a host's slot. */
export type SlotState =
  /** Its run, in its present state. */
  | { readonly kind: 'run'; readonly run: WorkflowRun }
  /** There is no run and there will be none. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Cancelled before it had a run. */
  | { readonly kind: 'cancelled' };

const { PENDING, RUNNING, SUCCEEDED, FAILED, TIMED_OUT, CANCELLED } = WorkflowRunState;

/** The batch with the known states of its hosts folded in, and the next slots given. */
export function foldBatch(
  record: wire.WorkflowBatchRecord,
  slots: ReadonlyMap<number, SlotState>,
  isBusy: (host: HostName) => boolean,
  nowMs: number,
): wire.WorkflowBatchRecord {
  const draft = clone(wire.WorkflowBatchRecordSchema, record);
  const batch = draft.workflowBatch;
  if (batch === undefined || isBatchEnded(record)) return draft;
  batch.status ??= create(WorkflowBatchStatusSchema);
  const { status } = batch;
  for (const [index, slot] of slots) {
    const host = status.hosts[index];
    if (host?.state === RUNNING) foldSlot(host, slot);
  }
  const giving = givingOf(draft, batch);
  const { stop, reason } = giving.kind === 'stopped' ? giving : goesOn;
  status.stop = stop;
  status.stoppedReason = reason;
  if (draft.cancelled !== undefined) {
    for (const host of status.hosts) if (host.state === PENDING) host.state = CANCELLED;
  }
  if (giving.kind === 'goesOn') giveSlots(batch, isBusy);
  const isMoving = status.hosts.some(({ state }) => state === RUNNING);
  const isWaiting = giving.kind === 'goesOn' && status.hosts.some(({ state }) => state === PENDING);
  if (!isMoving && !isWaiting) status.endTime = timestampFromMs(nowMs);
  return draft;
}

/** It will not change any more. */
export function isBatchEnded({ workflowBatch }: wire.WorkflowBatchRecord): boolean {
  return workflowBatch?.status?.endTime !== undefined;
}

/** It gives no further slot. */
export function isStopped({ stop }: Pick<WorkflowBatchStatus, 'stop'>): boolean {
  return stop !== WorkflowBatchStop.UNSPECIFIED;
}

/** The hosts that have a slot, by their index in the batch. */
export function hostsWithSlot({ workflowBatch }: wire.WorkflowBatchRecord): number[] {
  const hosts = workflowBatch?.status?.hosts ?? [];
  return hosts.flatMap(({ state }, index) => (state === RUNNING ? [index] : []));
}

/** Whether a host of the batch has its slot: only then may a pending run of it start. */
export function hasSlot(record: wire.WorkflowBatchRecord, hostUid: HostUid): boolean {
  return record.cancelled === undefined && isUnread(record, hostUid);
}

/** Whether the batch has not noted yet how the run of this host ended. */
export function isUnread(record: wire.WorkflowBatchRecord, hostUid: HostUid): boolean {
  const index = record.hostUids.indexOf(hostUid);
  return record.workflowBatch?.status?.hosts[index]?.state === RUNNING;
}

function foldSlot(host: WorkflowBatchHost, slot: SlotState): void {
  switch (slot.kind) {
    case 'refused':
      host.state = FAILED;
      host.message = cut(slot.message);
      return;
    case 'cancelled':
      host.state = CANCELLED;
      host.message = '';
      return;
    case 'run':
      foldRun(host, slot.run);
  }
}

function foldRun(host: WorkflowBatchHost, run: WorkflowRun): void {
  // The number is enough; the name is built from it where the batch is shown.
  host.run = String(run.number);
  switch (run.state) {
    case PENDING:
    case RUNNING:
      host.message = cut(run.waiting?.message ?? '');
      return;
    case SUCCEEDED:
      host.state = SUCCEEDED;
      host.message = '';
      return;
    case TIMED_OUT:
    case CANCELLED:
      host.state = run.state;
      host.message = cut(run.error?.message ?? '');
      return;
    default:
      host.state = FAILED;
      host.message = cut(run.error?.message ?? 'its run ended in a way that is not understood');
  }
}

/** Whether the batch gives further slots. */
type SlotGiving =
  | { readonly kind: 'goesOn' }
  /** `reason` is for people. */
  | { readonly kind: 'stopped'; readonly stop: WorkflowBatchStop; readonly reason: string };

const goesOn = { stop: WorkflowBatchStop.UNSPECIFIED, reason: '' } as const;

function givingOf(
  { cancelled }: wire.WorkflowBatchRecord,
  { spec, status }: WorkflowBatch,
): SlotGiving {
  if (cancelled !== undefined) {
    const why = cancelled.reason === '' ? '' : `: ${cancelled.reason}`;
    const reason = `cancelled by ${cancelled.by}${why}`;
    return { kind: 'stopped', stop: WorkflowBatchStop.CANCELLED, reason };
  }
  const failuresMax = spec?.maxFailures ?? 1;
  const failed = (status?.hosts ?? []).filter(
    ({ state }) => state === FAILED || state === TIMED_OUT,
  );
  if (failuresMax === 0 || failed.length < failuresMax) return { kind: 'goesOn' };
  const named = failed.slice(0, hostsNamedMax).map(({ host }) => host);
  const more = failed.length > named.length ? ', …' : '';
  const reason = `${failed.length} of at most ${failuresMax} failed: ${named.join(', ')}${more}`;
  return { kind: 'stopped', stop: WorkflowBatchStop.FAILURES, reason };
}

/** Hosts without a run go first: a busy one would only wait in its slot. */
function giveSlots({ spec, status }: WorkflowBatch, isBusy: (host: HostName) => boolean): void {
  const hosts = status?.hosts ?? [];
  const started = hosts.filter(({ state }) => state === RUNNING).length;
  const free = Math.max(0, (spec?.maxParallel ?? 1) - started);
  if (free === 0) return;
  const waiting = hosts.filter(({ state }) => state === PENDING);
  const idle = waiting.filter(({ host }) => !isBusy(host));
  const busy = waiting.filter(({ host }) => isBusy(host));
  for (const host of [...idle, ...busy].slice(0, free)) host.state = RUNNING;
}

/** The batch for people: counts and the names of runs. */
export function shownBatch(
  { workflowBatch }: wire.WorkflowBatchRecord,
  batch: WorkflowBatch,
): WorkflowBatch {
  const status = workflowBatch?.status;
  if (status === undefined) return batch;
  const count = (...states: WorkflowRunState[]) =>
    status.hosts.filter(({ state }) => states.includes(state)).length;
  batch.status = create(WorkflowBatchStatusSchema, {
    pending: count(PENDING),
    running: count(RUNNING),
    succeeded: count(SUCCEEDED),
    failed: count(FAILED, TIMED_OUT),
    cancelled: count(CANCELLED),
    stop: status.stop,
    stoppedReason: status.stoppedReason,
    ...(status.endTime === undefined ? {} : { endTime: status.endTime }),
    hosts: status.hosts.map((host) => ({ ...host, run: runNameOf(batch, host) })),
  });
  return batch;
}

function runNameOf({ spec }: WorkflowBatch, { host, run }: WorkflowBatchHost): string {
  if (run === '') return '';
  return workflowRunName(
    workflowIdOf(spec?.template ?? '', host),
    asWorkflowRunNumber(BigInt(run)),
  );
}

/** The workflow that a batch runs on a host. */
export function workflowIdOf(template: string, host: HostName): WorkflowId {
  return {
    hostId: idOf(host),
    templateId: asTemplateId(idOf(template)),
  };
}

function cut(text: string): string {
  return text.length <= messageCharsMax ? text : `${text.slice(0, messageCharsMax - 1)}…`;
}
