import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type AbandonedResource,
  agent,
  ClaimSchema,
  DeletionMode,
  HoldSchema,
  HoldScope,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
  store,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { explainHost } from './explain.ts';
import { displayOf } from './display.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  erased,
  failed,
  inspected,
  verified,
  virtioDisk,
} from './testing/bench.ts';
import type { HostEffect } from './types.ts';
import { nextWakeMs } from './wake.ts';

const normal = { kind: 'delete', reason: 'sold' } as const;
const force = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt down' } as const;
const callMs = 60_000;

function statusOf(host: Bench) {
  const status = host.record.host?.status;
  if (status === undefined) throw new Error('no status');
  return status;
}

function runKind(host: Bench): RunKind | undefined {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? undefined : run?.kind;
}

function abandonedIn(effects: readonly HostEffect[]): AbandonedResource | undefined {
  return effects.flatMap((effect) => (effect.kind === 'abandon' ? [effect.resource] : []))[0];
}

/** A verified host that rests in manageable. */
function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

/** A host that runs an image. */
function provisioned(spec: Parameters<typeof bench>[0] = {}): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE, ...spec });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.record = clone(store.HostRecordSchema, host.record);
  const status = statusOf(host);
  status.state = HostState.PROVISIONED;
  status.poweredOn = true;
  return host;
}

/** A host whose switching off, on the way out, is under way. */
function switchingOff(request: typeof normal | typeof force): Bench {
  const host = manageable();
  statusOf(host).poweredOn = true;
  host.request(request);
  expect(host.operation().kind.case).toBe('setPower');
  return host;
}

function agentLeaves(host: Bench): void {
  host.context = { ...host.context, session: undefined };
}

function pass(host: Bench, ms: number): readonly HostEffect[] {
  host.nowMs += ms;
  const { session } = host.context;
  if (session !== undefined) {
    host.context = { ...host.context, session: { ...session, lastMessageMs: host.nowMs } };
  }
  return host.apply({ kind: 'tick' });
}

/** What a request is refused with; the record must be the same, byte for byte. */
function refusalOf(host: Bench, request: Parameters<Bench['request']>[0]): string {
  const before = clone(store.HostRecordSchema, host.record);
  const outcome = host.try({ kind: 'request', request, by: { actor: 'user:test' } });
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  return outcome.kind === 'refused' ? outcome.refusal.message : `accepted: ${outcome.kind}`;
}

test.each([normal, force])('a claimed host is busy for a deletion ($mode)', (request) => {
  const host = manageable();
  statusOf(host).claim = create(ClaimSchema, {
    by: 'pools/web',
    reason: 'wave 2',
    at: timestampFromMs(host.nowMs),
  });
  expect(refusalOf(host, request)).toBe(
    'hosts/h1: busy: claimed by pools/web (wave 2) since 2026-01-01T00:00:00Z; ' +
      'it must be unclaimed first',
  );
});

test.each([normal, force])('a release hold makes a host busy ($mode)', (request) => {
  const host = manageable();
  const reason = 'evidence for the auditors';
  const hold = { scope: HoldScope.RELEASE, by: 'user:ann', reason };
  statusOf(host).holds.push(create(HoldSchema, hold));
  expect(refusalOf(host, request)).toContain(`kept from release by user:ann: ${reason}`);
});

test.each([normal, force])('a clean under way makes a host busy ($mode)', (request) => {
  const host = bench();
  driveToErase(host);
  expect(refusalOf(host, request)).toContain(
    'busy: clean 3 holds the host (at deploy.erase_devices) since 2026-01-01T00:00:00Z',
  );
});

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

test('the agent of another replica is waited for as well, for as long', () => {
  const host = switchingOff(normal);
  host.context = { ...host.context, session: undefined, sessionElsewhere: true };
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

test('the intent only rises, and asked again it changes nothing', () => {
  const host = switchingOff(normal);
  const before = host.record;
  expect(host.request(normal)).toEqual([]);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  host.request(force);
  const forced = host.record;
  expect(forced.host?.status?.deletion).toMatchObject({ mode: DeletionMode.FORCE });
  for (const request of [normal, force]) expect(host.request(request)).toEqual([]);
  expect(equals(store.HostRecordSchema, forced, host.record)).toBe(true);
});

test('a pending deletion is raised to force only while nobody has taken the host meanwhile', () => {
  const host = switchingOff(normal);
  const hold = { scope: HoldScope.RELEASE, by: 'user:ann', reason: 'wait' };
  statusOf(host).holds.push(create(HoldSchema, hold));
  expect(refusalOf(host, normal)).toBe('accepted: kept');
  expect(refusalOf(host, force)).toContain('kept from release by user:ann');
});

test('a normal deletion is taken back until its removal has begun, a forced one never', () => {
  const host = switchingOff(normal);
  const cancel = { kind: 'cancelDelete', reason: 'a mistake' } as const;
  expect(refusalOf(host, cancel)).toContain('removal has begun');
  host.report(failed('notApplied'));
  expect(displayOf(statusOf(host))).toBe('pending delete');
  host.request(cancel);
  expect(statusOf(host).deletion).toBeUndefined();
  expect(statusOf(host).backoff).toBeUndefined();
  expect(refusalOf(host, cancel)).toContain('no deletion is under way');

  const forced = bench();
  forced.apply({ kind: 'tick' });
  forced.request(force);
  expect(refusalOf(forced, cancel)).toContain('forced deletion cannot be taken back');
});

test('a host that runs an image is released, erased and only then removed', () => {
  const host = provisioned();
  host.request(normal);
  expect(runKind(host)).toBe(RunKind.RELEASE);
  expect(displayOf(statusOf(host))).toBe('pending delete, releasing');
  host.report(done);
  expect(runKind(host)).toBe(RunKind.CLEAN);
  expect(statusOf(host).run?.requestedBy).toBe('deletion');
  host.report(done);
  host.report(done);
  host.runnerReady();
  host.report(inspected());
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected());
  const effects = host.report(done);
  expect(runKind(host)).toBe(RunKind.DELETE);
  expect(effects).toContainEqual({ kind: 'forget' });
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('what is erased to be removed is never offered as available', () => {
  const host = provisioned();
  if (host.record.host?.spec !== undefined) host.record.host.spec.goal = HostGoal.AVAILABLE;
  host.request(normal);
  host.report(done);
  host.report(done);
  host.report(done);
  host.runnerReady();
  host.report(inspected());
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected());
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
});

test('a policy keeps the data of a host, and its power', () => {
  const host = provisioned({ deletion: { keepData: true, keepPower: true } });
  host.request(normal);
  expect(runKind(host)).toBe(RunKind.RELEASE);
  expect(host.report(done)).toContainEqual({ kind: 'forget' });

  const on = bench({ goal: HostGoal.MANAGEABLE, deletion: { keepPower: true } });
  on.apply({ kind: 'tick' });
  on.report(verified());
  statusOf(on).poweredOn = true;
  expect(on.request(normal)).toContainEqual({ kind: 'forget' });
});

test('a deletion’s failures are retried for ever, after pauses that grow up to a bound', () => {
  const host = provisioned();
  host.request(normal);
  const pausesMs: number[] = [];
  for (let attempt = 0; attempt < 10; attempt++) {
    expect(runKind(host)).toBe(RunKind.RELEASE);
    host.report(failed('notApplied', 'the BMC did nothing'));
    const next = statusOf(host).backoff?.nextAttemptTime;
    if (next === undefined) throw new Error('given up');
    pausesMs.push(timestampMs(next) - host.nowMs);
    pass(host, pausesMs.at(-1) ?? 0);
  }
  expect(pausesMs[0]).toBeLessThan(pausesMs.at(-1) ?? 0);
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(host.context.timing.goalDelayMaxMs);
});

test('a release that is under way is let finish, and leads on to the removal', () => {
  const host = provisioned();
  host.request({ kind: 'release', reason: 'not needed' });
  expect(host.request(normal).filter(({ kind }) => kind === 'cancel')).toEqual([]);
  host.report(done);
  expect(runKind(host)).toBe(RunKind.CLEAN);
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
  host.context = { ...host.context, session: undefined, agentRegistered: false };
  const left = abandonedIn(host.request(force));
  expect(host.removed).toBe(true);
  expect(left?.fencePending).toBe(false);
  expect(left?.leftBehind[0]).toContain('was not switched off: no agent has ever joined its rack');
});

test('a fence holds the host until it is lifted, or a person says it is disconnected', () => {
  const host = bench();
  const update = { kind: 'update', spec: host.record.host?.spec, labels: {} };
  host.context = { ...host.context, fencesPending: new Set(['u0']) };
  host.request({ ...update, fences: ['u0'] } as Parameters<Bench['request']>[0]);
  expect(runKind(host)).toBeUndefined();
  expect(statusOf(host).holds).toEqual([
    expect.objectContaining({ by: 'system', reason: expect.stringContaining('fencePending') }),
  ]);
  const plain = { kind: 'releaseHold', hold: '', reason: 'in a hurry' } as const;
  expect(refusalOf(host, plain)).toContain('physically_disconnected');
  const before = host.record;
  host.request({ ...plain, hold: 'fencePending', physicallyDisconnected: true });
  expect(statusOf(host).holds).toEqual([]);
  expect(host.record.change?.cause).toContain('physically disconnected');
  expect(runKind(host)).toBe(RunKind.VERIFY);

  host.record = before;
  host.context = { ...host.context, fencesPending: new Set() };
  host.apply({ kind: 'tick' });
  expect(host.record.fences).toEqual([]);
  expect(statusOf(host).holds).toEqual([]);
  expect(runKind(host)).toBe(RunKind.VERIFY);
  expect(refusalOf(host, { ...plain, physicallyDisconnected: true })).toContain('fencePending');
});

test('explain knows what a deletion waits for, and the way out that needs neither agent nor BMC', () => {
  const explained = (host: Bench) =>
    explainHost(host.record, { ...host.context, nowMs: host.nowMs });
  const forceLine = expect.stringContaining('rackwright host delete h1 --force --reason WHY');

  const away = manageable();
  away.request(normal);
  agentLeaves(away);
  away.apply({ kind: 'tick' });
  expect(explained(away)).toMatchObject({
    headline: 'deleting, waiting for agent: delete 2, step host.forget (1 of 1)',
    blocker: 'the agent of the rack',
    unblock: expect.arrayContaining([forceLine]),
  });

  const failing = provisioned();
  failing.request(normal);
  failing.report(failed('notApplied', 'the BMC did nothing'));
  expect(explained(failing).headline).toContain('the deletion is tried again after a pause');
  expect(explained(failing).unblock).toEqual(expect.arrayContaining([forceLine]));

  const poor = provisioned();
  poor.context = { ...poor.context, credentialVersion: undefined };
  poor.request(normal);
  expect(explained(poor).headline).toContain('credential does not exist');
  expect(explained(poor).unblock).toEqual([
    expect.stringContaining('rackwright credential create c1'),
    forceLine,
  ]);

  const kept = provisioned();
  const reason = 'evidence for the auditors';
  kept.request(normal);
  kept.report(failed('notApplied'));
  statusOf(kept).holds.push(
    create(HoldSchema, { scope: HoldScope.RELEASE, by: 'user:ann', reason }),
  );
  pass(kept, 3_600_000);
  expect(runKind(kept)).toBeUndefined();
  expect(explained(kept)).toMatchObject({
    headline: 'pending delete: held by user:ann: it is neither released nor erased',
    unblock: [
      expect.stringContaining('release-hold h1'),
      expect.stringContaining('cancel-delete h1'),
    ],
  });

  const forced = switchingOff(force);
  expect(explained(forced).deadline).toEqual(timestampFromMs(forced.nowMs + callMs));
  expect(explained(forced).unblock).toEqual(['nothing: it goes on by itself after that']);
});

test('explain says what a fence waits for', () => {
  const host = bench();
  host.context = { ...host.context, fencesPending: new Set(['u0']) };
  const update = { kind: 'update', spec: host.record.host?.spec, labels: {}, fences: ['u0'] };
  host.request(update as Parameters<Bench['request']>[0]);
  const told = explainHost(host.record, { ...host.context, nowMs: host.nowMs });
  expect(told.blocker).toBe('the agent of the host that was removed by force');
  expect(told.causes[0]?.text).toContain('abandonedResources/u0');
  expect(told.unblock).toEqual([
    expect.stringContaining('rackwright abandoned get u0'),
    expect.stringContaining('--hold fencePending --physically-disconnected'),
  ]);
});

test('a host of a newer version is left alone and shown, and force removes it', () => {
  const host = manageable();
  const future = 77 as HostState;
  statusOf(host).state = future;
  const before = clone(store.HostRecordSchema, host.record);
  for (const event of [{ kind: 'tick' }, { kind: 'forgotten' }] as const) host.apply(event);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  for (const request of [normal, { kind: 'verify' }] as const) {
    expect(refusalOf(host, request)).toContain('state 77 is not known to this version');
  }
  const told = explainHost(host.record, { ...host.context, nowMs: host.nowMs });
  expect(told.headline).toContain('left alone: its state 77');
  host.request(force);
  const left = abandonedIn(host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toEqual([expect.stringContaining('state 77')]);

  const running = bench();
  running.apply({ kind: 'tick' });
  const { run } = statusOf(running);
  if (run !== undefined) run.kind = 99 as RunKind;
  expect(refusalOf(running, { kind: 'abort', reason: '' })).toContain('run kind 99');
  running.request(force);
  running.apply({ kind: 'forgotten' });
  expect(running.removed).toBe(true);
});

test('an agent that did not confirm is asked to forget again whenever the host is looked at', () => {
  const host = manageable();
  host.request(normal);
  expect(pass(host, 60_000)).toEqual([{ kind: 'forget' }]);
  agentLeaves(host);
  host.apply({ kind: 'tick' });
  expect(host.apply({ kind: 'tick' })).toEqual([]);
});
