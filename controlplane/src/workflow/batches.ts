/**
 * The shell around `foldBatch`: gives hosts their slots and reads the results, until the batch is
 * over. Level-triggered, like the loop of workflows.
 *
 * Invariant: a slot is in the batch's record before the host gets its run. So a crash, or another
 * replica, gives no host a second run, and does not exceed the parallel hosts.
 */
import { equals } from '@bufbuild/protobuf';
import {
  ApiFailure,
  type BatchId,
  batchOfActor,
  type HostName,
  RunKind,
  readActor,
  store as wire,
} from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { Entry } from '@rackwright/store';
import type { FleetView } from '../fleet-view/index.ts';
import type { Follower, StoreFollower } from '../following/index.ts';
import { Controller, type Passes } from '../loop/index.ts';
import { idOf, readableRecordOf, readShared, writeShared } from '../records/index.ts';
import { foldBatch, hostsWithSlot, isBatchEnded, type SlotState } from './batch-rules.ts';
import { takeSlot } from './batch-slot.ts';
import type { ReconciledWorkflow, Workflows } from './loop.ts';
import { batchKey, batchOfKey } from './names.ts';
import type { RequestDependencies } from './read.ts';
import { keptRuns } from './record.ts';

export interface BatchesDependencies extends RequestDependencies {
  /** From the same store. */
  readonly following: StoreFollower;
  /** From the same store. */
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'row'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly workflows: Workflows;
  readonly resyncIntervalMs: number;
  readonly retryDelayMs: number;
}

export interface BatchSnapshot {
  readonly record: wire.WorkflowBatchRecord;
  readonly revision: ReconciledWorkflow['revision'];
}

const schema = wire.WorkflowBatchRecordSchema;
/**
 * The most rounds of one pass: each gives slots or folds in ends; the hosts of a batch bound them.
 */
const roundsMax = 2_000;

export class Batches {
  readonly #deps: BatchesDependencies;
  readonly #controller: Controller<BatchId>;
  /** Batches that are not over. */
  readonly #open = new Set<BatchId>();

  get passes(): Passes {
    return this.#controller;
  }

  constructor(deps: BatchesDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      keyOf: String,
      fieldsOf: (batchId) => ({ batch: `workflowBatches/${batchId}` }),
      pass: (batchId) => this.#reconcile(batchId),
    });
  }

  async start(): Promise<void> {
    this.#deps.workflows.onReconcile((record) => {
      for (const { requestedBy } of keptRuns(record)) {
        const batchId = batchOfActor(readActor(requestedBy));
        if (batchId !== undefined && this.#open.has(batchId)) this.wake(batchId);
      }
    });
    const follower: Follower = {
      listed: ({ entries }) => this.#listed(entries),
      changed: (change) => {
        const batchId = batchOfKey(change.key);
        if (batchId === undefined) return;
        if (change.kind === 'put') this.#note(batchId, change);
        else this.#open.delete(batchId);
      },
    };
    const { following, resyncIntervalMs } = this.#deps;
    await following.follow('workflowBatches', follower, this.#controller.signal);
    this.#controller.resync(resyncIntervalMs, () => {
      for (const batchId of this.#open) this.wake(batchId);
    });
  }

  stop(): void {
    this.#controller.stop();
  }

  /** Batches that are not over, as known to this replica. */
  openIds(): readonly BatchId[] {
    return [...this.#open];
  }

  /** Reconciles the batch soon. */
  wake(batchId: BatchId): void {
    this.#controller.wake(batchId, 'due');
  }

  /** Reconciles the batch now; resolves with the resulting batch. */
  reconcile(batchId: BatchId): Promise<BatchSnapshot | undefined> {
    return this.#controller.take(batchId, () => this.#reconcile(batchId));
  }

  async #reconcile(batchId: BatchId): Promise<BatchSnapshot | undefined> {
    const { store, clock } = this.#deps;
    const key = batchKey(batchId);
    for (let round = 0; round < roundsMax; round++) {
      const kept = await readShared(store, schema, key);
      if (kept === undefined || isBatchEnded(kept.record)) {
        this.#open.delete(batchId);
        return kept;
      }
      this.#open.add(batchId);
      if (this.#controller.signal.aborted) return kept;
      const { slots, failure } = await this.#takeSlots(kept.record);
      const nowMs = clock.nowMs();
      const first = foldBatch(kept.record, slots, () => false, nowMs);
      // Whether hosts are busy matters only where a slot is to be given.
      const given = hostsWithSlot(first).some((index) => !slots.has(index));
      if (given) await this.#deps.fleetView.caughtUp();
      const isBusy = (host: HostName) => this.#isBusy(host);
      const next = given ? foldBatch(kept.record, slots, isBusy, nowMs) : first;
      if (equals(schema, kept.record, next)) {
        if (failure !== undefined) throw failure;
        return kept;
      }
      await writeShared(this.#deps, schema, key, next, kept.revision);
    }
    throw new Error(`workflowBatches/${batchId}: not settled after ${roundsMax} rounds`);
  }

  /** A failing slot of one host does not delay the others: it is retried once those are written. */
  async #takeSlots(record: wire.WorkflowBatchRecord): Promise<{
    readonly slots: ReadonlyMap<number, SlotState>;
    readonly failure: ApiFailure | undefined;
  }> {
    const slots = new Map<number, SlotState>();
    let failure: ApiFailure | undefined;
    for (const index of hostsWithSlot(record)) {
      try {
        slots.set(index, await takeSlot(this.#deps, record, index));
      } catch (error) {
        if (!(error instanceof ApiFailure) || error.error.kind === 'unavailable') throw error;
        failure = error;
      }
    }
    return { slots, failure };
  }

  /**
   * Whether a run holds the host. It only orders the slots; the decision uses the host's own
   * record.
   */
  #isBusy(host: HostName): boolean {
    const row = this.#deps.fleetView.row(idOf(host));
    return row?.kind === 'host' && row.runKind !== RunKind.UNSPECIFIED;
  }

  #listed(entries: readonly Entry[]): void {
    const there = new Map<BatchId, Entry>();
    for (const entry of entries) {
      const batchId = batchOfKey(entry.key);
      if (batchId !== undefined) there.set(batchId, entry);
    }
    for (const batchId of this.#open) if (!there.has(batchId)) this.#open.delete(batchId);
    for (const [batchId, entry] of there) this.#note(batchId, entry);
  }

  #note(batchId: BatchId, entry: Entry): void {
    const record = readableRecordOf(this.#deps, schema, entry);
    if (record === undefined || isBatchEnded(record)) this.#open.delete(batchId);
    else {
      this.#open.add(batchId);
      this.wake(batchId);
    }
  }
}
