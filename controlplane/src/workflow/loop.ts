/**
 * The shell around `decide`: reads a workflow with its context, writes the decision, sends the
 * order to the host. Level-triggered: woken by workflows, hosts, templates, batches, stored
 * deadlines and a slow resync; the resync finds missed changes.
 *
 * Invariants:
 * 1. A lost compare-and-set repeats the whole decision on the present record.
 * 2. The pending run is in the store before the order to the host (R3), and the order names
 *    workflow and run: a repeat, after a crash or from another replica, starts nothing twice.
 * 3. Nothing is kept here that the store cannot rebuild.
 * 4. A host's run of a deleted workflow is ended.
 */
import { equals } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actors,
  RunKind,
  RunPhase,
  readActor,
  type TemplateId,
  type WorkflowRunNumber,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { type Clock, type Log, pause, type Random } from '@rackwright/platform';
import {
  type Change,
  type Entry,
  type ListPage,
  type StateStore,
  storeKey,
} from '@rackwright/store';
import type { FleetRow, FleetView } from '../fleet-view/index.ts';
import type { Follower, StoreFollower } from '../following/index.ts';
import type { Hosts } from '../host/index.ts';
import { Controller, type Passes } from '../loop/index.ts';
import {
  deleteRecord,
  listingsOf,
  orUnavailable,
  readableRecordOf,
  readShared,
  writeShared,
} from '../records/index.ts';
import { decideWorkflow, presentRun, type WorkflowAction } from './decide.ts';
import {
  parseWorkflowRunName,
  type WorkflowId,
  workflowKey,
  workflowName,
  workflowOfKey,
} from './names.ts';
import { endWithState, isOpen, latestRun, withAlert, withStartedRun, withWait } from './record.ts';
import type { StartOrder } from './rendering.ts';
import { SeenWorkflows } from './seen.ts';
import { readWorkflowSnapshot } from './snapshot.ts';

export interface WorkflowsDependencies {
  readonly store: StateStore;
  /** From the same store. */
  readonly following: StoreFollower;
  /** From the same store. */
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'idsBy' | 'onChange' | 'row' | 'rows' | 'start'>;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  readonly hosts: Pick<Hosts, 'request' | 'explain'>;
  readonly resyncIntervalMs: number;
  /** Pause before a retry after the store was unavailable. */
  readonly retryDelayMs: number;
}

/** A workflow after a pass. */
export interface ReconciledWorkflow {
  readonly record: wire.WorkflowRecord;
  readonly revision: number;
}

/** Workflows that a resync reads at once. */
const resyncPage = 100;
/** The least time of a resync for each workflow. */
const resyncMsPerWorkflow = 40;
/** The most decisions of one pass; each writes, or ends the pass. */
const roundsMax = 16;

export class Workflows {
  readonly #deps: WorkflowsDependencies;
  readonly #controller: Controller<WorkflowId>;
  readonly #seen = new SeenWorkflows();
  readonly #observers: ((record: wire.WorkflowRecord) => void)[] = [];

  constructor(deps: WorkflowsDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      keyOf: workflowKey,
      fieldsOf: (id) => ({ workflow: workflowName(id) }),
      pass: (id) => this.#reconcile(id),
    });
  }

  get passes(): Passes {
    return this.#controller;
  }

  /** Loads every workflow, then follows the store. */
  async start(): Promise<void> {
    const { following, fleetView, resyncIntervalMs } = this.#deps;
    const { signal } = this.#controller;
    await fleetView.start();
    fleetView.onChange((before, after) => this.#hostChanged(before, after), signal);
    const workflows: Follower = {
      listed: ({ entries }) => this.#listed(entries),
      changed: (change) => this.#changed(change),
    };
    const templates: Follower = {
      listed: () => undefined,
      changed: ({ key }) => this.#wakeOpen((id) => `templates.${id.templateId}` === key),
    };
    const batches: Follower = {
      listed: () => undefined,
      changed: ({ kind }) => (kind === 'delete' ? this.#wakeOpen(() => true) : undefined),
    };
    await following.follow('workflows', workflows, signal);
    for (const hostId of fleetView.idsBy('run', String(RunKind.WORKFLOW))) {
      this.#hostChanged(undefined, fleetView.row(hostId));
    }
    await following.follow('templates', templates, signal);
    await following.follow('workflowBatches', batches, signal);
    this.#controller.resync(resyncIntervalMs, () => this.#resync());
  }

  stop(): void {
    this.#controller.stop();
  }

  /** Calls `observer` after every pass over a workflow. */
  onReconcile(observer: (record: wire.WorkflowRecord) => void): void {
    this.#observers.push(observer);
  }

  /** Carries out pending decisions; resolves with the resulting workflow. */
  reconcile(id: WorkflowId): Promise<ReconciledWorkflow | undefined> {
    return this.#controller.take(id, () => this.#reconcile(id));
  }

  /** Runs `work` without a concurrent pass on this replica; other replicas may run one. */
  oneAtATime<T>(id: WorkflowId, work: () => Promise<T>): Promise<T> {
    return this.#controller.take(id, work);
  }

  /** Reconciles the workflow soon. */
  wake(id: WorkflowId): void {
    this.#controller.wake(id, 'due');
  }

  async #reconcile(id: WorkflowId): Promise<ReconciledWorkflow | undefined> {
    const key = workflowKey(id);
    let refused = false;
    for (let round = 0; round < roundsMax; round++) {
      const kept = await readShared(this.#deps.store, wire.WorkflowRecordSchema, key);
      if (kept === undefined) {
        this.#seen.delete(id);
        await this.#endOrphan(id);
        return undefined;
      }
      const snapshot = await readWorkflowSnapshot(this.#deps, kept.record, id);
      const action = decideWorkflow(kept.record, id, snapshot);
      // An order that the host has just refused is sent again only after a change.
      const again = refused && action.kind === 'start';
      if (action.kind === 'none' || again) return this.#settled(id, kept);
      await this.#carryOut(id, kept, action, snapshot.hostRevision);
      refused ||= action.kind === 'start';
    }
    throw new Error(`${workflowName(id)}: not settled after ${roundsMax} decisions in a row`);
  }

  /**
   * Ends a host's run of a deleted workflow: another replica may have sent the order during the
   * deletion. The host is read first: the workflow of its run was in the store before. So a
   * workflow that is missing afterwards has been deleted since.
   */
  async #endOrphan(id: WorkflowId): Promise<void> {
    const { store, hosts } = this.#deps;
    const host = await readShared(store, wire.HostRecordSchema, storeKey('hosts', id.hostId));
    const present = presentRun(host?.record);
    if (host === undefined || present === undefined || present.abort !== undefined) return;
    if (present.phase === RunPhase.ENDED) return;
    if (parseWorkflowRunName(present.workflowRun)?.templateId !== id.templateId) return;
    if ((await readShared(store, wire.WorkflowRecordSchema, workflowKey(id))) !== undefined) return;
    const abort = { kind: 'abort', reason: `${workflowName(id)} is gone` } as const;
    await hosts.request(id.hostId, abort, { actor: actors.system }, host.revision);
    this.#log(id, 'a run whose workflow is gone is ended');
  }

  #settled(id: WorkflowId, kept: ReconciledWorkflow): ReconciledWorkflow {
    const run = latestRun(kept.record);
    this.#seen.set(id, isOpen(run) || kept.record.untoldRuns.length > 0);
    const waitsUntil = run?.state === WorkflowRunState.PENDING ? run.deadline : undefined;
    if (waitsUntil !== undefined) this.#controller.wakeAt(id, timestampMs(waitsUntil), 'due');
    for (const observer of this.#observers) observer(kept.record);
    return kept;
  }

  async #carryOut(
    id: WorkflowId,
    kept: ReconciledWorkflow,
    action: Exclude<WorkflowAction, { kind: 'none' }>,
    hostRevision: number,
  ): Promise<void> {
    const { record, revision } = kept;
    switch (action.kind) {
      case 'orphan': {
        await this.#noteOrphan(id, record, action.number);
        if (action.record !== undefined) return this.#write(id, kept, action.record);
        await deleteRecord(this.#deps, workflowKey(id), revision);
        return;
      }
      case 'remove': {
        const gone = await deleteRecord(this.#deps, workflowKey(id), revision);
        if (gone.kind === 'ok') this.#log(id, 'the workflow went with its host or its batch');
        return;
      }
      case 'write':
        await this.#write(id, kept, action.record);
        return;
      case 'start':
        await this.#write(id, kept, await this.#begin(id, record, action.order));
        return;
      case 'abort': {
        const { reason } = action;
        const by = { actor: actors.system };
        await this.#deps.hosts.request(id.hostId, { kind: 'abort', reason }, by, hostRevision);
        return;
      }
      case 'noteTimeout':
        await this.#noteTimeout(id, record, action.number);
        await this.#write(id, kept, withAlert(record, action.number));
    }
  }

  /** The record after the order to start the pending run. */
  async #begin(
    id: WorkflowId,
    record: wire.WorkflowRecord,
    order: StartOrder,
  ): Promise<wire.WorkflowRecord> {
    const nowMs = this.#deps.clock.nowMs();
    const requestId = startId(record);
    const by = { actor: readActor(record.actor), requestId };
    const outcome = await this.#deps.hosts.request(
      id.hostId,
      { ...order, use: record.ownerUse },
      by,
    );
    if (outcome.kind === 'refused') return withWait(record, 'host', outcome.message, nowMs);
    if (outcome.kind !== 'accepted') return record;
    const present = presentRun(outcome.record);
    if (present?.workflowRun === order.workflowRun) return withStartedRun(record, present);
    const message = 'the host has accepted it before, and nothing is known of how it ended';
    return endWithState(record, WorkflowRunState.FAILED, { type: 'lost', message }, nowMs);
  }

  /** A permanent line; the host records a repeated one once. */
  async #noteTimeout(
    id: WorkflowId,
    record: wire.WorkflowRecord,
    number: WorkflowRunNumber,
  ): Promise<void> {
    const uid = record.workflow?.uid ?? '';
    const text = `${workflowName(id)}/runs/${number} timed out before it started`;
    const by = { actor: actors.system, requestId: `workflow:${uid}/${number}/timedOut` };
    await this.#deps.hosts.request(id.hostId, { kind: 'note', text }, by);
  }

  async #noteOrphan(
    id: WorkflowId,
    record: wire.WorkflowRecord,
    number: WorkflowRunNumber,
  ): Promise<void> {
    const uid = record.workflow?.uid ?? '';
    const run = `${workflowName(id)}/runs/${number}`;
    const text = `${run} went before it started: the host has changed hands since`;
    const by = { actor: actors.system, requestId: `workflow:${uid}/${number}/orphan` };
    await this.#deps.hosts.request(id.hostId, { kind: 'note', text }, by);
    this.#log(id, 'a pending run went with its tenant');
  }

  /** A conflict is no failure: the next pass decides on the present record. */
  async #write(
    id: WorkflowId,
    before: ReconciledWorkflow,
    record: wire.WorkflowRecord,
  ): Promise<void> {
    const schema = wire.WorkflowRecordSchema;
    if (equals(schema, before.record, record)) return;
    const { revision } = before;
    const written = await writeShared(this.#deps, schema, workflowKey(id), record, revision);
    if (written.kind === 'ok') this.#log(id, 'the workflow changed', record);
  }

  #log(id: WorkflowId, text: string, record?: wire.WorkflowRecord): void {
    const run = record === undefined ? undefined : latestRun(record);
    const fields = run === undefined ? {} : { run: Number(run.number), state: run.state };
    this.#deps.log.info({ workflow: workflowName(id), ...fields }, text);
  }

  #listed(entries: readonly Entry[]): void {
    this.#seen.keepOnly(entries.flatMap(({ key }) => workflowOfKey(key) ?? []));
    for (const entry of entries) this.#note(entry);
  }

  #changed(change: Change): void {
    if (change.kind === 'put') return this.#note(change);
    const id = workflowOfKey(change.key);
    if (id !== undefined) this.#seen.delete(id);
  }

  #note(entry: Entry): void {
    const id = workflowOfKey(entry.key);
    if (id === undefined) return;
    const record = readableRecordOf(this.#deps, wire.WorkflowRecordSchema, entry);
    if (record === undefined) return this.#seen.delete(id);
    const open = isOpen(latestRun(record)) || record.untoldRuns.length > 0;
    this.#seen.set(id, open);
    if (open) this.wake(id);
    else for (const observer of this.#observers) observer(record);
  }

  /**
   * Wakes the workflow in progress on the host, known or not, and all of its workflows when the
   * host is gone.
   */
  #hostChanged(before: FleetRow | undefined, after: FleetRow | undefined): void {
    const { hostId = '' } = after ?? before ?? {};
    const carried = carriedBy(after);
    const there = this.#seen.ofHost(hostId);
    if (carried !== undefined && !there.has(carried)) {
      this.wake({ hostId, templateId: carried });
    }
    for (const [templateId, open] of there) {
      if (open || after === undefined || carried === templateId) this.wake({ hostId, templateId });
    }
  }

  #wakeOpen(wanted: (id: WorkflowId) => boolean): void {
    for (const id of this.#seen.open()) if (wanted(id)) this.wake(id);
  }

  /** Deletions were reported by the watch, or by a listing after it broke off. */
  async #resync(): Promise<void> {
    const { store, clock } = this.#deps;
    const { signal } = this.#controller;
    const between = () => pause(clock, resyncPage * resyncMsPerWorkflow, signal);
    const list = (page: ListPage) => orUnavailable(store.list('workflows', page));
    for await (const { entries } of listingsOf(list, { limit: resyncPage, between })) {
      if (signal.aborted) return;
      for (const entry of entries) this.#note(entry);
    }
  }
}

/** The template of the host's present run; undefined: none. */
function carriedBy(row: FleetRow | undefined): TemplateId | undefined {
  return row?.kind === 'host' ? parseWorkflowRunName(row.workflowRun)?.templateId : undefined;
}

/** The same for every attempt to start this run, and for no other run. */
function startId(record: wire.WorkflowRecord): string {
  return `workflow:${record.workflow?.uid}/${latestRun(record)?.number}`;
}
