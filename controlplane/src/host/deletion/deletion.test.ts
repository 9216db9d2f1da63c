import { create, equals } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  ClaimSchema,
  DeletionMode,
  HoldSchema,
  HoldScope,
  HostGoal,
  HostState,
  RunKind,
  RunOutcome,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { displayOf } from '../pass/display.ts';
import {
  bench,
  done,
  driveToErase,
  erased,
  failed,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import {
  abandonedIn,
  agentLeaves,
  callMs,
  force,
  manageable,
  normal,
  pass,
  provisioned,
  refusalOf,
  runKind,
  statusOf,
  switchingOff,
} from '../testing/deleting.ts';

test.each([normal, force])('a claimed host is busy for a deletion ($mode)', (request) => {
  const host = manageable();
  statusOf(host).claim = create(ClaimSchema, {
    by: 'pools/web',
    reason: 'wave 2',
    at: timestampFromMs(host.nowMs),
  });
  expect(refusalOf(host, request)).toBe(
    'hosts/h1: busy: claimed by pools/web (wave 2) since 2026-01-01T00:00:00Z; ' +
      'take it out of what pools/web selects first, and it gives the host up',
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

const takeBack = { kind: 'cancelDelete', reason: 'a mistake' } as const;

test('a deletion taken back erases nothing: the clean that it started ends', () => {
  const host = provisioned();
  host.request(normal);
  host.report(done);
  expect(runKind(host)).toBe(RunKind.CLEAN);
  const effects = host.request(takeBack);
  expect(effects).toContainEqual(expect.objectContaining({ kind: 'cancel' }));
  const by = { by: 'user:test', reason: 'the deletion was taken back' };
  expect(statusOf(host).run?.abort).toMatchObject(by);
  // Even when the power off could not be stopped any more, nothing follows it.
  host.report(done);
  expect(runKind(host)).toBeUndefined();
  expect(statusOf(host)).toMatchObject({
    state: HostState.MANAGEABLE,
    dirty: true,
    run: { kind: RunKind.CLEAN, outcome: RunOutcome.CANCELLED },
    backoff: { givenUpReason: expect.stringContaining('was aborted') },
  });
});

test('a release that has not switched off yet ends with the deletion that started it', () => {
  const host = provisioned();
  host.request(normal);
  agentLeaves(host);
  host.request(takeBack);
  host.report(failed('cancelled'));
  expect(statusOf(host)).toMatchObject({
    state: HostState.PROVISIONED,
    run: { kind: RunKind.RELEASE, outcome: RunOutcome.CANCELLED },
  });
  expect(runKind(host)).toBeUndefined();
});

test('a release that a person asked for goes on when the deletion after it is taken back', () => {
  const host = provisioned();
  host.request({ kind: 'release', reason: 'done with it' });
  host.request(normal);
  host.request(takeBack);
  expect(statusOf(host).run?.abort).toBeUndefined();
  expect(runKind(host)).toBe(RunKind.RELEASE);
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

test('a host that is erased to be removed is never offered as available', () => {
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
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(host.snapshot.timing.goalDelayMaxMs);
});

test('a release that is under way is let finish, and leads on to the removal', () => {
  const host = provisioned();
  host.request({ kind: 'release', reason: 'not needed' });
  expect(host.request(normal).filter(({ kind }) => kind === 'cancel')).toEqual([]);
  host.report(done);
  expect(runKind(host)).toBe(RunKind.CLEAN);
});

test('an agent that did not confirm is asked to forget at each look at the host', () => {
  const host = manageable();
  host.request(normal);
  expect(pass(host, 60_000)).toEqual([{ kind: 'forget' }]);
  agentLeaves(host);
  host.apply({ kind: 'tick' });
  expect(host.apply({ kind: 'tick' })).toEqual([]);
});

/** A released host that ran an image; it has not been erased since. */
function released() {
  const host = manageable();
  host.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: 'it runs the shop' });
  host.report(verified());
  host.request({ kind: 'release', reason: 'closed' });
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  return host;
}

test('a host that ran an image is erased before it goes, also if it was released long ago', () => {
  const host = released();
  host.request(normal);
  expect(runKind(host)).toBe(RunKind.CLEAN);
  expect(statusOf(host).run?.requestedBy).toBe('deletion');
});

test('a list of steps that erases nothing leaves a released host to be erased', () => {
  const host = released();
  host.request({ kind: 'clean', steps: [{ step: 'powerOff', arguments: {} }] });
  host.report(done);
  expect(runKind(host)).toBeUndefined();
  host.request(normal);
  expect(runKind(host)).toBe(RunKind.CLEAN);
});

test('a deletion taken back and asked again still erases what ran an image', () => {
  const host = released();
  host.request(normal);
  host.request(takeBack);
  host.report(failed('cancelled'));
  host.request(normal);
  expect(runKind(host)).toBe(RunKind.CLEAN);
});

test('a released host that goes by force leaves word of its data', () => {
  const host = released();
  agentLeaves(host);
  const [left] = [abandonedIn(host.request(force)) ?? abandonedIn(pass(host, callMs))];
  expect(left?.leftBehind).toContainEqual(expect.stringMatching(/^data: /));
});

test('a host that ran an image and is external by now goes unerased, as it is not ours', () => {
  const host = released();
  host.request({ kind: 'adopt', to: HostState.EXTERNAL, reason: 'another team' });
  host.report(verified());
  expect(statusOf(host).state).toBe(HostState.EXTERNAL);
  host.request(normal);
  expect(runKind(host)).toBe(RunKind.DELETE);
});

test('why a host was removed stands in its timeline for ever', () => {
  const host = manageable();
  host.request({ ...force, reason: 'sold' });
  expect(host.record.change?.cause).toContain('to be removed by force: sold');
});
