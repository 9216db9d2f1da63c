/** Explains what a host of batches waits for before it gets a run of theirs. */
import { clone, create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  type Explanation,
  ExplanationSchema,
  type HostName,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { idOf, readShared } from '../records/index.ts';
import { hostsWithSlot, isBatchEnded, isStopped } from './batch-rules.ts';
import type { Batches } from './batches.ts';
import { batchKey, type WorkflowId, workflowName } from './names.ts';

/** Where hosts that wait for a slot are found. */
export interface SlotSource {
  readonly store: StateStore;
  readonly batches: Pick<Batches, 'openIds'>;
}

/** A slot that a host has not got yet. */
export interface AwaitedSlot {
  /** "workflowBatches/set-clocks" */
  readonly batch: string;
  readonly template: string;
  /** Since the batch exists. */
  readonly since: Timestamp | undefined;
  readonly hostsWithSlot: number;
  readonly parallelMax: number;
}

/** The slot that the batch will give the host, if it goes on; none once it has stopped. Pure. */
export function awaitedSlot(
  record: wire.WorkflowBatchRecord,
  host: HostName,
): AwaitedSlot | undefined {
  const { workflowBatch: batch, cancelled } = record;
  if (batch === undefined || cancelled !== undefined || isBatchEnded(record)) return undefined;
  if (batch.status === undefined || isStopped(batch.status)) return undefined;
  const line = batch.status.hosts.find((each) => each.host === host);
  if (line?.state !== WorkflowRunState.PENDING) return undefined;
  return {
    batch: batch.name,
    template: batch.spec?.template ?? '',
    since: batch.createTime,
    hostsWithSlot: hostsWithSlot(record).length,
    parallelMax: batch.spec?.maxParallel ?? 1,
  };
}

/** All slots that the host waits for; only batches that are not over are read. */
export async function awaitedSlots(source: SlotSource, host: HostName): Promise<AwaitedSlot[]> {
  const slots: AwaitedSlot[] = [];
  for (const batchId of source.batches.openIds()) {
    const schema = wire.WorkflowBatchRecordSchema;
    const kept = await readShared(source.store, schema, batchKey(batchId));
    const slot = kept === undefined ? undefined : awaitedSlot(kept.record, host);
    if (slot !== undefined) slots.push(slot);
  }
  return slots;
}

/** The host's explanation with the slots that it waits for; its other waits stay first. Pure. */
export function withAwaitedSlots(
  explanation: Explanation,
  slots: readonly AwaitedSlot[],
): Explanation {
  const [first] = slots;
  if (first === undefined) return explanation;
  const shown = clone(ExplanationSchema, explanation);
  shown.causes.push(...slots.map(causeOf));
  // The slot does not change the host's present blocker.
  if (shown.blocker !== '') return shown;
  shown.unblock.push(...slots.flatMap(adviceOf));
  shown.blocker = `its slot in ${first.batch}`;
  if (first.since !== undefined) shown.since = first.since;
  return shown;
}

/** For a workflow that the host has not got yet; undefined when no batch will give it. */
export async function explainAwaited(
  source: SlotSource,
  id: WorkflowId,
): Promise<Explanation | undefined> {
  const slots = await awaitedSlots(source, `hosts/${id.hostId}`);
  const mine = slots.filter(({ template }) => template === `templates/${id.templateId}`);
  if (mine.length === 0) return undefined;
  const headline = 'the host has not got it yet';
  return withAwaitedSlots(create(ExplanationSchema, { subject: workflowName(id), headline }), mine);
}

function causeOf({ batch, since, hostsWithSlot: count, parallelMax }: AwaitedSlot) {
  const text = `${batch} has chosen it, and lets ${parallelMax} at once; ${count} have a slot`;
  return create(CauseSchema, since === undefined ? { text } : { text, since });
}

function adviceOf({ batch }: AwaitedSlot): string[] {
  const batchId = idOf(batch);
  return [
    `see who has its slots: rackwright workflow batch get ${batchId}`,
    `or give it up: rackwright workflow batch cancel ${batchId} --reason WHY`,
  ];
}
