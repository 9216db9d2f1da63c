/** A failing run of a bench's host, and the resulting failure in its pool. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  PoolStatusSchema,
  RolloutSlotState,
  type Run,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import type { Bench } from '../../host/testing/bench.ts';
import { seenHost } from '../facts/seen.ts';
import { foldSlots } from './slots.ts';

/** The host's present step; empty between runs. */
export function stepAt({ record }: Bench): string {
  const run = record.host?.status?.run;
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** The present step fails with this, and with it the run. */
export function failRun(host: Bench, init: MessageInitShape<typeof agent.FailedSchema>): Run {
  const number = host.record.host?.status?.run?.number;
  host.report({ case: 'failed', value: create(agent.FailedSchema, init) });
  const kept = [host.record.host?.status?.run, ...host.record.finishedRuns];
  const run = kept.find((each) => each?.number === number && each?.phase === RunPhase.ENDED);
  if (run === undefined) throw new Error('the run has not ended');
  return run;
}

/** The failure in a pool whose slot is for this run. */
export function failureOf(
  { record, nowMs }: Bench,
  run: Run,
  image: string,
): wire.PoolFailure | undefined {
  const slot = { host: 'hosts/h1', hostUid: 'u1', image, number: 1n, run: run.number };
  const status = create(PoolStatusSchema, {
    slots: [{ ...slot, kind: run.kind, state: RolloutSlotState.RUNNING }],
  });
  const pool = create(wire.PoolRecordSchema, { pool: { name: 'pools/p1', uid: 'p', status } });
  const seen = seenHost(record);
  if (seen === undefined) throw new Error('the host is seen');
  const hosts = new Map([['u1', seen]]);
  const draft = { record: pool, status, hosts, nowMs, registries: [], deployments: [] };
  foldSlots(draft, new Map([[1n, { kind: 'run', run }]]));
  return pool.failures[0];
}
