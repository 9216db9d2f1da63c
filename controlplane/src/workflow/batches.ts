/**
 * The shell around `foldBatch`: gives hosts their slots and reads what became of them, until the
 * batch is over. Level-triggered, as the loop of workflows is.
 *
 * Invariant: a slot stands in the batch's record before the host gets its run, so that a crash, or
 * another replica, gives no host a second one and lets no more go at once than may.
 */
import { equals } from '@bufbuild/protobuf';
import { ApiFailure, type HostName, RunKind, store as wire } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { Entry } from '@rackwright/store';
import type { FleetView } from '../fleet-view/index.ts';
import type { Follower, Following } from '../following/index.ts';
import { Controller, type Passes } from '../loop/index.ts';
import { idOf, idOfKey, readShared, sharedRecordOf, writeShared } from '../records/index.ts';
import { foldBatch, hostsWithSlot, isOver, type SlotState } from './batch-rules.ts';
import { takeSlot } from './batch-slot.ts';
import type { WorkflowSnapshot, Workflows } from './loop.ts';
import { batchKey, parseBatchName } from './names.ts';
import type { RequestDependencies } from './read.ts';
import { keptRuns } from './record.ts';

export interface BatchesDependencies extends RequestDependencies {
  /** Of the same store. */
  readonly following: Following;
  /** Of the same store. */
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'row'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly workflows: Workflows;
  readonly resyncIntervalMs: number;
  readonly retryDelayMs: number;
}

export interface LookedBatch {
  readonly record: wire.WorkflowBatchRecord;
  readonly revision: WorkflowSnapshot['revision'];
}

const schema = wire.WorkflowBatchRecordSchema;
/** Rounds of one look: each gives slots or folds in ends; the hosts of a batch bound them. */
const passesMax = 2_000;

export class Batches {
  readonly #deps: BatchesDependencies;
  readonly #controller: Controller;
  /** Batches that are not over. */
  readonly #open = new Set<string>();

  get passes(): Passes {
    return this.#controller;
  }

  constructor(deps: BatchesDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      keyOf: String,
      fieldsOf: (batchId) => ({ batch: `workflowBatches/${batchId}` }),
      pass: (batchId) => this.#look(batchId),
    });
  }

  async start(): Promise<void> {
    this.#deps.workflows.onLook((record) => {
      for (const { requestedBy } of keptRuns(record)) {
        const batchId = parseBatchName(requestedBy);
        if (batchId !== undefined && this.#open.has(batchId)) this.wake(batchId);
      }
    });
    const follower: Follower = {
      listed: ({ entries }) => this.#listed(entries),
      changed: (change) => {
        if (change.kind === 'put') this.#note(change);
        else this.#open.delete(idOfKey(change.key));
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

  /** Batches that are not over, as far as this replica has seen. */
  openIds(): readonly string[] {
    return [...this.#open];
  }

  /** Looks at the batch again soon. */
  wake(batchId: string): void {
    this.#controller.wake(batchId, 'look');
  }

  /** Does what is to be done now; resolves with the batch as it then is. */
  look(batchId: string): Promise<LookedBatch | undefined> {
    return this.#controller.take(batchId, () => this.#look(batchId));
  }

  async #look(batchId: string): Promise<LookedBatch | undefined> {
    const { store, clock } = this.#deps;
    const key = batchKey(batchId);
    for (let pass = 0; pass < passesMax; pass++) {
      const kept = await readShared(store, schema, key);
      if (kept === undefined || isOver(kept.record)) {
        this.#open.delete(batchId);
        return kept;
      }
      this.#open.add(batchId);
      if (this.#controller.signal.aborted) return kept;
      const { slots, failure } = await this.#takeSlots(kept.record);
      const nowMs = clock.nowMs();
      const first = foldBatch(kept.record, slots, () => false, nowMs);
      // Who is held matters only where a slot is to be given.
      const given = hostsWithSlot(first).some((index) => !slots.has(index));
      if (given) await this.#deps.fleetView.caughtUp();
      const isHeld = (host: HostName) => this.#isHeld(host);
      const next = given ? foldBatch(kept.record, slots, isHeld, nowMs) : first;
      if (equals(schema, kept.record, next)) {
        if (failure !== undefined) throw failure;
        return kept;
      }
      await writeShared(this.#deps, schema, key, next, kept.revision);
    }
    throw new Error(`workflowBatches/${batchId}: not settled after ${passesMax} rounds`);
  }

  /** A host whose slot fails holds up no other one: it is tried again once those are written. */
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

  /** Whether a run holds the host. It orders the slots; each host is asked by its own record. */
  #isHeld(host: HostName): boolean {
    const row = this.#deps.fleetView.row(idOf(host));
    return row?.kind === 'host' && row.runKind !== RunKind.UNSPECIFIED;
  }

  #listed(entries: readonly Entry[]): void {
    const there = new Set(entries.map(({ key }) => idOfKey(key)));
    for (const batchId of this.#open) if (!there.has(batchId)) this.#open.delete(batchId);
    for (const entry of entries) this.#note(entry);
  }

  #note(entry: Entry): void {
    const batchId = idOfKey(entry.key);
    if (isOver(sharedRecordOf(this.#deps.store, schema, entry))) this.#open.delete(batchId);
    else {
      this.#open.add(batchId);
      this.wake(batchId);
    }
  }
}
