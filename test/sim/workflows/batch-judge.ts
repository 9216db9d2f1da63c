/**
 * The judge's rules about batches, by records as they were written.
 *
 * B1 Never more hosts than `max_parallel` have a slot, or carry a run of the batch, at once.
 * B2 A batch gives a host one run.
 * B3 The hosts of a batch are fixed; how one of them ended stands, and is how its run ended.
 * B4 Once it is cancelled, or has failed as often as it may, nobody gets a slot or starts.
 * B5 When the faults stop every batch ends, with an outcome for each host that it did not stop for.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  RunKind,
  RunPhase,
  store,
  type WorkflowBatchHost,
  WorkflowBatchStop,
  type WorkflowRun,
  WorkflowRunState,
} from '@rackwright/messages';
import type { JudgeParts } from '../judged.ts';

/** Who starts a run may have looked at its batch so long before: it may be suspended. */
const cancelSlackMs = 90_000;

const { UNSPECIFIED: GOES_ON } = WorkflowBatchStop;
const { PENDING, RUNNING, SUCCEEDED, FAILED, TIMED_OUT } = WorkflowRunState;

export class BatchJudge {
  readonly #parts: JudgeParts;
  readonly #found: (rule: string, text: string) => void;
  /** By key. */
  readonly #batches = new Map<string, store.WorkflowBatchRecord>();
  /** By uid; also of batches that are gone. */
  readonly #parallel = new Map<string, number>();
  /** By uid: when it was cancelled. */
  readonly #cancelledMs = new Map<string, number>();
  /** "WORKFLOW/runs/N WORKFLOW-UID" → its latest state. */
  readonly #runs = new Map<string, WorkflowRun>();
  /** "BATCH-UID WORKFLOW-UID" → the number of the run that it was given. */
  readonly #given = new Map<string, bigint>();
  /** Name of a workflow's run → the uid of its batch. */
  readonly #batchOf = new Map<string, string>();
  /** Host uid → the uid of the batch whose run it carries now. */
  readonly #carrying = new Map<string, string>();
  #backUntilMs = -1;

  constructor(parts: JudgeParts, found: (rule: string, text: string) => void) {
    this.#parts = parts;
    this.#found = found;
  }

  /** The store went back: for a while hosts still do what stands there no more. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
  }

  /** An older state of the store stands there now: what it says is noted next. */
  reload(): void {
    for (const kept of [this.#batches, this.#cancelledMs, this.#runs]) kept.clear();
    for (const kept of [this.#given, this.#batchOf, this.#carrying]) kept.clear();
  }

  /** Takes in what was written; undefined: it is gone. */
  note(key: string, value: Uint8Array | undefined): void {
    if (!this.#parts.view.batches) return;
    if (key.startsWith('workflows.') && value !== undefined) {
      this.#noteWorkflow(fromBinary(store.WorkflowRecordSchema, value));
    }
    if (!key.startsWith('workflowBatches.')) return;
    if (value === undefined) this.#batches.delete(key);
    else this.#noteBatch(key, fromBinary(store.WorkflowBatchRecordSchema, value));
  }

  /** Takes in a written record of a host. */
  changed({ host }: store.HostRecord): void {
    if (!this.#parts.view.batches) return;
    const uid = host?.uid ?? '';
    const run = host?.status?.run;
    const before = this.#carrying.get(uid);
    const isOpen = run?.kind === RunKind.WORKFLOW && run.phase !== RunPhase.ENDED;
    const batch = isOpen ? this.#batchOf.get(run.workflowRun) : undefined;
    if (batch === undefined) {
      this.#carrying.delete(uid);
      return;
    }
    this.#carrying.set(uid, batch);
    if (before !== batch) this.#started(batch, host?.name ?? '');
  }

  /** A host is gone. */
  removed({ host }: store.HostRecord): void {
    this.#carrying.delete(host?.uid ?? '');
  }

  isSettled(): boolean {
    return [...this.#batches.values()].every(isOver);
  }

  /** B5, and B3 by what runs came to. */
  end(): void {
    for (const [key, record] of this.#batches) {
      if (!isOver(record)) this.#found('B5', `${key} is not over at the end`);
      const { stop = GOES_ON } = record.workflowBatch?.status ?? {};
      for (const entry of hostsOf(record)) {
        const isLeft = entry.state === RUNNING || (entry.state === PENDING && stop === GOES_ON);
        if (isLeft) this.#found('B5', `${key}: ${entry.host} has no outcome`);
        this.#judgeOutcome(key, record, entry);
      }
    }
  }

  /** B1 by what hosts do, and B4. */
  #started(batch: string, host: string): void {
    const { nowMs } = this.#parts.view.heap;
    if (nowMs < this.#backUntilMs) return;
    this.#parts.view.count('run of a batch starts');
    const atOnce = [...this.#carrying.values()].filter((each) => each === batch).length;
    if (atOnce > 1) this.#parts.view.count('runs of a batch side by side');
    const most = this.#parallel.get(batch) ?? 0;
    if (atOnce > most) this.#found('B1', `${atOnce} hosts run for a batch of ${most}: ${host}`);
    const cancelledMs = this.#cancelledMs.get(batch) ?? nowMs;
    if (nowMs - cancelledMs > cancelSlackMs) {
      this.#found('B4', `${host} starts for a batch that was cancelled`);
    }
  }

  #noteWorkflow({ workflow, earlierRuns }: store.WorkflowRecord): void {
    const latest = workflow?.status?.run;
    for (const run of latest === undefined ? earlierRuns : [latest, ...earlierRuns]) {
      const { batchUid } = run;
      // A workflow that was made again has the names of its runs again.
      if (batchUid === '') this.#batchOf.delete(run.name);
      if (batchUid === '') continue;
      this.#batchOf.set(run.name, batchUid);
      this.#runs.set(`${batchUid} ${run.name}`, run);
      const given = `${batchUid} ${workflow?.uid}`;
      const known = this.#given.get(given) ?? run.number;
      this.#given.set(given, known);
      if (known === run.number) continue;
      this.#found('B2', `${run.name} is the second run of its batch, after run ${known}`);
    }
  }

  #noteBatch(key: string, record: store.WorkflowBatchRecord): void {
    const { nowMs } = this.#parts.view.heap;
    const uid = record.workflowBatch?.uid ?? '';
    const most = record.workflowBatch?.spec?.maxParallel ?? 1;
    this.#parallel.set(uid, most);
    if (record.cancelled !== undefined && !this.#cancelledMs.has(uid)) {
      this.#cancelledMs.set(uid, nowMs);
    }
    const before = this.#batches.get(key);
    this.#batches.set(key, record);
    const started = hostsOf(record).filter(({ state }) => state === RUNNING).length;
    if (started > most) this.#found('B1', `${key}: ${started} hosts have a slot, of ${most}`);
    if (before === undefined) this.#parts.view.count('batch made');
    if (before?.workflowBatch?.uid !== uid) return;
    if (isOver(record) && !isOver(before)) this.#parts.view.count('batch over');
    this.#judgeChange(key, before, record);
  }

  /** B3 and B4. */
  #judgeChange(
    key: string,
    before: store.WorkflowBatchRecord,
    record: store.WorkflowBatchRecord,
  ): void {
    const was = hostsOf(before);
    const is = hostsOf(record);
    const isSame = was.every(({ host }, at) => is[at]?.host === host) && was.length === is.length;
    if (!isSame) this.#found('B3', `${key} has other hosts than before`);
    const failuresMax = record.workflowBatch?.spec?.maxFailures ?? 1;
    const failures = was.filter(({ state }) => state === FAILED || state === TIMED_OUT).length;
    const isStopped = failuresMax > 0 && failures >= failuresMax;
    for (const [at, { host, state }] of was.entries()) {
      const now = is[at]?.state;
      const hasEnded = state !== PENDING && state !== RUNNING;
      if (hasEnded && now !== state) this.#found('B3', `${key}: ${host} had ended, and changes`);
      const getsSlot = state === PENDING && now === RUNNING;
      if (!getsSlot || (before.cancelled === undefined && !isStopped)) continue;
      this.#found('B4', `${key}: ${host} gets a slot after the batch was stopped`);
    }
  }

  #judgeOutcome(key: string, record: store.WorkflowBatchRecord, entry: WorkflowBatchHost): void {
    const { spec, uid } = record.workflowBatch ?? {};
    const template = spec?.template.replace('templates/', '');
    const name = `${entry.host}/workflows/${template}/runs/${entry.run}`;
    const run = this.#runs.get(`${uid} ${name}`);
    if (entry.run === '' || run === undefined) return;
    if ((run.state === SUCCEEDED) === (entry.state === SUCCEEDED)) return;
    const text = `in state ${entry.state}, its run in ${run.state}`;
    this.#found('B3', `${key}: ${entry.host} is ${text}`);
  }
}

function hostsOf({ workflowBatch }: store.WorkflowBatchRecord): readonly WorkflowBatchHost[] {
  return workflowBatch?.status?.hosts ?? [];
}

function isOver({ workflowBatch }: store.WorkflowBatchRecord): boolean {
  return workflowBatch?.status?.endTime !== undefined;
}
