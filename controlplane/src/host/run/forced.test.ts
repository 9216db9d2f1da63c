import { create } from '@bufbuild/protobuf';
import { agent, HostState, RunKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { displayOf } from '../pass/display.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { bench, done, driveToErase, failed } from '../testing/bench.ts';
import {
  abandonedIn,
  agentLeaves,
  callMs,
  force,
  normal,
  pass,
  provisioned,
  runKind,
  statusOf,
  switchingOff,
} from '../testing/deleting.ts';

test('a clean whose agent has been away too long is stuck: force removes the host at once', () => {
  const host = bench();
  driveToErase(host);
  agentLeaves(host);
  pass(host, 1_000);
  pass(host, 90_000);
  const effects = host.request(force);
  expect(host.removed).toBe(true);
  const left = abandonedIn(effects);
  expect(left?.leftBehind).toEqual([
    'work: clean 3 may still be going on at deploy.erase_devices: ' +
      'the agent of the rack is not connected',
    'power: the host could not be switched off: the agent of the rack is not connected',
    'agent: it has not confirmed that it dropped addresses, credentials, leases and boot grants: ' +
      'the agent of the rack is not connected',
  ]);
  expect(left).toMatchObject({
    name: 'abandonedResources/u1',
    host: 'hosts/h1',
    rack: 'racks/r1',
    bmcAddress: '10.0.0.1:623',
    bootMacs: ['52:54:00:00:00:01'],
    removedBy: 'user:test',
    reason: 'burnt down',
    fencePending: true,
  });
  expect(effects.findIndex(({ kind }) => kind === 'tombstone')).toBeGreaterThan(
    effects.findIndex(({ kind }) => kind === 'abandon'),
  );
});

test('force with everything at hand is as normal, and leaves nothing behind', () => {
  const host = switchingOff(force);
  expect(displayOf(statusOf(host))).toBe('deleting');
  host.report(done);
  const effects = host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
  expect(effects.filter(({ kind }) => kind === 'abandon' || kind === 'tombstone')).toEqual([]);
});

test.each<[string, agent.Report['result']]>([
  ['failed', failed('notApplied', 'the BMC did nothing')],
  [
    'could not tell',
    { case: 'transientError', value: create(agent.TransientErrorSchema, { message: 'silent' }) },
  ],
  [
    'conflict',
    { case: 'retryAfter', value: create(agent.RetryAfterSchema, { message: 'locked' }) },
  ],
  ['interrupted', failed('interrupted', 'the agent was started again')],
])('force calls once: after a power-off that ended "%s" it goes on', (_how, result) => {
  const host = switchingOff(force);
  const { id } = host.operation();
  const effects = host.report(result);
  expect(effects).toContainEqual({ kind: 'forget' });
  expect(effects.filter(({ kind }) => kind === 'send')).toEqual([]);
  const left = abandonedIn(host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toHaveLength(1);
  expect(left?.leftBehind[0]).toMatch(/^power: the host could not be switched off: /);
  expect(left?.fencePending).toBe(false);
  expect(id).toBe('u1/2/0/1');
});

test('an upgrade to force during a hanging call counts when the call fails', () => {
  const host = switchingOff(normal);
  host.request(force);
  expect(displayOf(statusOf(host))).toBe('deleting');
  const effects = host.report(failed('notApplied'));
  expect(effects).toContainEqual({ kind: 'forget' });
  expect(statusOf(host).backoff).toBeUndefined();
});

test('an upgrade to force waits for a hanging call no longer than its share', () => {
  const host = switchingOff(normal);
  host.request(force);
  expect(nextWakeMs(host.record, host.nowMs)).toBe(host.nowMs + callMs);
  pass(host, callMs - 1);
  expect(host.operation().kind.case).toBe('setPower');
  expect(pass(host, 1)).toContainEqual({ kind: 'forget' });
  pass(host, callMs - 1);
  expect(host.removed).toBe(false);
  const left = abandonedIn(pass(host, 1));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toEqual([
    'power: the host could not be switched off: no answer within 60 s',
    expect.stringMatching(/^agent: it has not confirmed .*: no answer within 60 s$/),
  ]);
});

test('force names the restored store as the reason why the BMC was not asked', () => {
  const host = provisioned();
  host.snapshot = { ...host.snapshot, restored: 'a restored store is not accepted' };
  host.request(force);
  pass(host, callMs);
  const [power] = abandonedIn(pass(host, callMs))?.leftBehind ?? [];
  expect(power).toBe(
    'power: the host could not be switched off: it was not ordered: ' +
      'a restored store is not accepted',
  );
});

test('the agent of another replica is waited for as well, for as long', () => {
  const host = switchingOff(normal);
  host.snapshot = { ...host.snapshot, session: undefined, sessionElsewhere: true };
  host.request(force);
  pass(host, callMs - 1);
  expect(host.removed).toBe(false);
  pass(host, 1);
  pass(host, callMs);
  expect(host.removed).toBe(true);
});

test('force ends another run first, and waits for that no longer than for one call', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const { id } = host.operation();
  expect(host.request(force)).toContainEqual({
    kind: 'cancel',
    operationId: id,
    cancelId: `${id}/cancel`,
  });
  expect(displayOf(statusOf(host))).toBe('pending force delete, verifying');
  expect(runKind(host)).toBe(RunKind.VERIFY);
  pass(host, callMs);
  expect(runKind(host)).toBe(RunKind.DELETE);
  const left = abandonedIn(host.apply({ kind: 'forgotten' }));
  expect(left?.leftBehind).toEqual([
    'work: verify 1 may still be going on at bmc.verifyAccess: no answer within 60 s',
  ]);
});

test('forced, a host that runs an image is switched off, and its data is left behind', () => {
  const host = provisioned();
  host.request(force);
  expect(host.operation().kind.case).toBe('setPower');
  host.report(done);
  const left = abandonedIn(host.apply({ kind: 'forgotten' }));
  expect(left?.leftBehind).toEqual([
    'data: the host ran an image, and its disks have not been erased',
  ]);
});

test.each([normal, force])('the power of an external host is never touched ($mode)', (request) => {
  const host = provisioned();
  statusOf(host).state = HostState.EXTERNAL;
  const effects = host.request(request);
  expect(effects).toContainEqual({ kind: 'forget' });
  expect(effects.filter(({ kind }) => kind === 'send')).toEqual([]);
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('a rack without any agent has nobody to forget anything: force leaves no fence', () => {
  const host = provisioned();
  host.snapshot = { ...host.snapshot, session: undefined, agentRegistered: false };
  const left = abandonedIn(host.request(force));
  expect(host.removed).toBe(true);
  expect(left?.fencePending).toBe(false);
  expect(left?.leftBehind[0]).toContain('was not switched off: no agent has ever joined its rack');
});

test('a call that hung before it was forced is not made again when its own time is over', () => {
  const host = switchingOff(normal);
  const { operationTimeoutMs } = host.snapshot.timing;
  pass(host, operationTimeoutMs - 10_000);
  host.request(force);
  const effects = pass(host, 10_000);
  expect(effects.filter(({ kind }) => kind === 'send')).toEqual([]);
  expect(statusOf(host).run?.number).toBe(2n);
  expect(pass(host, callMs - 10_000)).toContainEqual({ kind: 'forget' });
});
