import { create } from '@bufbuild/protobuf';
import { HostState, RunKind, RunPhase, RunSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { availableHost, type Bench, done, inspected, statusOf, stepAt } from '../testing/bench.ts';
import { holdsNothing } from './deployment.ts';

const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;

function driveTo(host: Bench, name: string): void {
  for (let count = 0; count < 20 && stepAt(host) !== name; count++) {
    if (stepAt(host) === 'runner.await') host.runnerReady();
    else host.report(stepAt(host) === 'runner.inspect' ? inspected() : done);
  }
  expect(stepAt(host)).toBe(name);
}

/** Whether the present order permits a write during the download. */
function asComes(host: Bench): boolean | undefined {
  const { kind } = host.operation();
  return kind.case === 'runStep' ? kind.value.deployment?.writeAsFetched : undefined;
}

test('an image is written as it comes only onto a host that has just been cleaned', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image: first });
  expect([stepAt(host), asComes(host)]).toEqual(['deploy.fetch_image', true]);
  driveTo(host, 'deploy.write_image');
  expect(asComes(host)).toBe(true);
  // A complete image on the disk has to be kept.
  driveTo(host, 'deploy.await_image');
  expect(asComes(host)).toBe(false);

  host.report(done);
  host.request({ kind: 'claim', reason: 'mine' });
  expect(statusOf(host).state).toBe(HostState.PROVISIONED);
  host.request({ kind: 'reimage', image: second });
  expect([stepAt(host), asComes(host)]).toEqual(['deploy.fetch_image', false]);
  driveTo(host, 'deploy.write_image');
  // Its record names no image by now.
  expect([statusOf(host).image, asComes(host)]).toEqual(['', false]);
});

test.each([
  [HostState.AVAILABLE, RunKind.PROVISION, RunPhase.RUNNING, '', true],
  [HostState.AVAILABLE, RunKind.PROVISION, RunPhase.ENDED, '', false],
  [HostState.AVAILABLE, RunKind.PROVISION, RunPhase.RUNNING, first, false],
  [HostState.AVAILABLE, RunKind.REIMAGE, RunPhase.RUNNING, '', false],
  [HostState.PROVISIONED, RunKind.PROVISION, RunPhase.RUNNING, '', false],
  [HostState.EXTERNAL, RunKind.PROVISION, RunPhase.RUNNING, '', false],
  [HostState.MANAGEABLE, RunKind.PROVISION, RunPhase.RUNNING, '', true],
  [HostState.MANAGEABLE, RunKind.REIMAGE, RunPhase.RUNNING, '', false],
])('a host in state %s with a run of kind %s, phase %s, image "%s": %s', (...row) => {
  const [state, kind, phase, image, expected] = row;
  const run = create(RunSchema, { kind, phase });
  expect(holdsNothing({ state, image, run })).toBe(expected);
  expect(holdsNothing({ state, image })).toBe(false);
});
