/** Which failures of hosts that run without a disk count against an image in its rollout. */
import { create } from '@bufbuild/protobuf';
import { DeploySpecSchema, FailureType, HostGoal, HostState, type Run } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, done, verified } from '../../host/testing/bench.ts';
import { failRun, failureOf, stepAt } from './failed-run.fixture.ts';

const image = `registry.example/os@sha256:${'1'.repeat(64)}`;

/** A provision without a disk whose step of this name fails. */
function failedAt(step: string): { readonly host: Bench; readonly run: Run } {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const found = { state: HostState.AVAILABLE, dirty: false, poweredOn: false };
  Object.assign(host.record.host?.status ?? {}, found);
  const deploy = create(DeploySpecSchema, { netboot: true });
  host.request({ kind: 'provision', image, deploy });
  for (let count = 0; count < 5 && stepAt(host) !== step; count++) host.report(done);
  expect(stepAt(host)).toBe(step);
  const run = failRun(host, { type: FailureType.BAD_IMAGE, message: 'it does not boot' });
  return { host, run };
}

test.each([
  ['deploy.fetch_image', false],
  ['power.off', false],
  ['power.bootImage', true],
  ['deploy.await_image', true],
])('a netboot that fails at %s counts: %s', (step, counted) => {
  const { host, run } = failedAt(step);
  const failure = failureOf(host, run, image);
  expect(failure).toMatchObject({ hostUid: 'u1', counted });
  // A failure that counts is not retried automatically: enough of them halt the rollout.
  expect(failure?.retryTime === undefined).toBe(counted);
});
