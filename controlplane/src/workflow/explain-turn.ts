/** Says of a host that batches have chosen, and no run of theirs has reached, what it awaits. */
import { clone, create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  type Explanation,
  ExplanationSchema,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { idOf, readShared } from '../records/index.ts';
import { hostsAtTurn, isOver } from './batch-rules.ts';
import type { Batches } from './batches.ts';
import { batchKey, type WorkflowId, workflowName } from './names.ts';

/** Where it is seen who waits for a turn. */
export interface TurnSource {
  readonly store: StateStore;
  readonly batches: Pick<Batches, 'openIds'>;
}

/** A turn that a host has not had yet. */
export interface AwaitedTurn {
  /** "workflowBatches/set-clocks" */
  readonly batch: string;
  readonly template: string;
  /** Since the batch stands. */
  readonly since: Timestamp | undefined;
  readonly hostsAtTurn: number;
  readonly parallelMax: number;
}

/** The turn that the batch will give the host, if it goes on; none once it has stopped. Pure. */
export function awaitedTurn(
  record: wire.WorkflowBatchRecord,
  host: string,
): AwaitedTurn | undefined {
  const { workflowBatch: batch, cancelled } = record;
  if (batch === undefined || cancelled !== undefined || isOver(record)) return undefined;
  if (batch.status === undefined || batch.status.stoppedReason !== '') return undefined;
  const line = batch.status.hosts.find((each) => each.host === host);
  if (line?.state !== WorkflowRunState.PENDING) return undefined;
  return {
    batch: batch.name,
    template: batch.spec?.template ?? '',
    since: batch.createTime,
    hostsAtTurn: hostsAtTurn(record).length,
    parallelMax: batch.spec?.maxParallel ?? 1,
  };
}

/** All turns that the host awaits; only batches that are not over are read. */
export async function awaitedTurns(source: TurnSource, host: string): Promise<AwaitedTurn[]> {
  const turns: AwaitedTurn[] = [];
  for (const batchId of source.batches.openIds()) {
    const schema = wire.WorkflowBatchRecordSchema;
    const kept = await readShared(source.store, schema, batchKey(batchId));
    const turn = kept === undefined ? undefined : awaitedTurn(kept.record, host);
    if (turn !== undefined) turns.push(turn);
  }
  return turns;
}

/** The host's explanation with the turns that it awaits; what else it awaits stays first. Pure. */
export function withAwaitedTurns(
  explanation: Explanation,
  turns: readonly AwaitedTurn[],
): Explanation {
  const [first] = turns;
  if (first === undefined) return explanation;
  const told = clone(ExplanationSchema, explanation);
  told.causes.push(...turns.map(causeOf));
  // Whatever is done about its turn, what keeps the host now goes on keeping it.
  if (told.blocker !== '') return told;
  told.unblock.push(...turns.flatMap(adviceOf));
  told.blocker = `its turn in ${first.batch}`;
  if (first.since !== undefined) told.since = first.since;
  return told;
}

/** Of a workflow that the host has not got yet; undefined when no batch will give it. */
export async function explainAwaited(
  source: TurnSource,
  id: WorkflowId,
): Promise<Explanation | undefined> {
  const turns = await awaitedTurns(source, `hosts/${id.hostId}`);
  const mine = turns.filter(({ template }) => template === `templates/${id.templateId}`);
  if (mine.length === 0) return undefined;
  const headline = 'the host has not got it yet';
  return withAwaitedTurns(create(ExplanationSchema, { subject: workflowName(id), headline }), mine);
}

function causeOf({ batch, since, hostsAtTurn: count, parallelMax }: AwaitedTurn) {
  const text = `${batch} has chosen it, and lets ${parallelMax} at once; ${count} have their turn`;
  return create(CauseSchema, since === undefined ? { text } : { text, since });
}

function adviceOf({ batch }: AwaitedTurn): string[] {
  const batchId = idOf(batch);
  return [
    `see whose turn it is: rackwright workflow batch get ${batchId}`,
    `or give it up: rackwright workflow batch cancel ${batchId} --reason WHY`,
  ];
}
