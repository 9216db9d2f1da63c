/** Which failures of hosts that run without a disk count against an image in its rollout. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  DeploySpecSchema,
  HostGoal,
  HostState,
  PoolStatusSchema,
  RolloutSlotState,
  type Run,
  RunKind,
  RunPhase,
  store as wire,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { type Bench, bench, done, verified } from '../host/testing/bench.ts';
import { seenHost } from './seen.ts';
import { foldSlots } from './slots.ts';

const image = `registry.example/os@sha256:${'1'.repeat(64)}`;

function stepAt({ record }: Bench): string {
  const run = record.host?.status?.run;
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** A provision without a disk whose step of this name fails. */
function failedAt(step: string): { readonly host: Bench; readonly run: Run } {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const found = { state: HostState.AVAILABLE, dirty: false, poweredOn: false };
  Object.assign(host.record.host?.status ?? {}, found);
  const deploy = create(DeploySpecSchema, { netboot: true });
  host.request({ kind: 'provision', image, deploy });
  const number = host.record.host?.status?.run?.number;
  for (let count = 0; count < 5 && stepAt(host) !== step; count++) host.report(done);
  expect(stepAt(host)).toBe(step);
  const value = create(agent.FailedSchema, { type: 'badImage', message: 'it does not boot' });
  host.report({ case: 'failed', value });
  const kept = [host.record.host?.status?.run, ...host.record.finishedRuns];
  const run = kept.find((each) => each?.number === number && each?.phase === RunPhase.ENDED);
  if (run === undefined) throw new Error('the run has not ended');
  return { host, run };
}

/** What the pool keeps of it. */
function failureOf({ record, nowMs }: Bench, run: Run): wire.PoolFailure | undefined {
  const slot = { host: 'hosts/h1', hostUid: 'u1', image, number: 1n, run: run.number };
  const status = create(PoolStatusSchema, {
    slots: [{ ...slot, kind: RunKind.PROVISION, state: RolloutSlotState.RUNNING }],
  });
  const pool = create(wire.PoolRecordSchema, { pool: { name: 'pools/p1', uid: 'p', status } });
  const seen = seenHost(record);
  if (seen === undefined) throw new Error('the host is seen');
  const draft = { record: pool, status, hosts: new Map([['u1', seen]]), nowMs, deployments: [] };
  foldSlots(draft, new Map([[1n, { kind: 'run', run }]]));
  return pool.failures[0];
}

test.each([
  ['deploy.prepare_netboot', false],
  ['power.bootImage', true],
  ['deploy.await_image', true],
])('a netboot that fails at %s counts: %s', (step, counted) => {
  const { host, run } = failedAt(step);
  const failure = failureOf(host, run);
  expect(failure).toMatchObject({ hostUid: 'u1', counted });
  // What counts is not tried again by itself: so many halt the rollout.
  expect(failure?.retryTime === undefined).toBe(counted);
});
