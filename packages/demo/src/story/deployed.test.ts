import { create } from '@bufbuild/protobuf';
import { PoolConditionSchema, type PoolStatus, PoolStatusSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { notCompleted, notHalted, type ReportedHost, wrongWith } from './deployed.ts';

const wanted = { version: '1.2', digest: 'sha256:aa', contentDigest: 'sha256:cc' };
const right: ReportedHost = {
  name: 'h1',
  image: 'registry/web@sha256:aa',
  contentDigest: 'sha256:cc',
  isProvisioned: true,
  diskHolds: '1.2',
  runs: '1.2',
};

test.for<[Partial<ReportedHost>, string]>([
  [{ isProvisioned: false }, 'h1 is not provisioned'],
  [{ image: 'registry/web@sha256:ab' }, 'h1 is said to run registry/web@sha256:ab'],
  [{ image: '' }, 'h1 is said to run nothing'],
  [{ contentDigest: 'sha256:cd' }, 'the content of the disk of h1 is said to be sha256:cd'],
  [{ diskHolds: '1.1' }, 'the disk of h1 holds 1.1'],
  [{ diskHolds: undefined }, 'the disk of h1 holds no whole image'],
  [{ runs: '1.0' }, 'h1 runs 1.0'],
  [{ runs: undefined }, 'h1 runs nothing'],
])('a host with %o is not on its image', ([change, problem]) => {
  expect(wrongWith(right, wanted)).toBeUndefined();
  expect(wrongWith({ ...right, ...change }, wanted)).toBe(problem);
});

interface Counts {
  readonly currentCount?: number;
  readonly failedCount?: number;
}

function poolAt(digest: string, counts: Counts, reason: string): PoolStatus {
  const degraded = create(PoolConditionSchema, {
    type: 'Degraded',
    status: reason !== 'Healthy',
    reason,
    message: '1 host failed',
  });
  return create(PoolStatusSchema, {
    target: { digest, image: `registry/web@${digest}` },
    conditions: [degraded],
    ...counts,
  });
}

test('a rollout is complete when the pool has all its hosts on that image', () => {
  const done = poolAt('sha256:aa', { currentCount: 3 }, 'Healthy');
  expect(notCompleted(done, wanted, 3)).toBeUndefined();
  expect(notCompleted(done, wanted, 4)).toBe('3 of 4 hosts are on it');
  const other = poolAt('sha256:ab', { currentCount: 3 }, 'Healthy');
  expect(notCompleted(other, wanted, 3)).toBe('the pool wants registry/web@sha256:ab');
  expect(notCompleted(undefined, wanted, 3)).toBe('the pool wants nothing yet');
});

test('a rollout is halted when the pool says so, of that image, for one host', () => {
  const halted = poolAt('sha256:aa', { failedCount: 1 }, 'RolloutHalted');
  expect(notHalted(halted, wanted)).toBeUndefined();
  expect(notHalted(halted, { digest: 'sha256:ab' })).toBe('the pool wants registry/web@sha256:aa');
  const two = poolAt('sha256:aa', { failedCount: 2 }, 'RolloutHalted');
  expect(notHalted(two, wanted)).toBe('2 hosts have failed, and one was to');
  const goesOn = poolAt('sha256:aa', { failedCount: 1 }, 'HostFailed');
  expect(notHalted(goesOn, wanted)).toBe('the rollout is not halted');
  const whole = poolAt('sha256:aa', { currentCount: 3 }, 'Healthy');
  expect(notHalted(whole, wanted)).toBe('the rollout is not halted');
});
