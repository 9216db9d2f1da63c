/**
 * Hosts without a BMC: nothing happens, and nothing is assumed, before somebody has reported it.
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  BmcProtocol,
  DeletionMode,
  FailureType,
  HostGoal,
  HostState,
  RunOutcome,
  RunPhase,
  readActor,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  erased,
  failed,
  inspected,
  makeAvailable,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const weeksMs = 21 * 24 * 3_600_000;
const waiting = (host: Bench) => statusOf(host).run?.waiting?.reason;
const tick = (host: Bench) => host.apply({ kind: 'tick' });
const sends = (effects: readonly { readonly kind: string }[]) =>
  effects.map(({ kind }) => kind).filter((kind) => kind === 'send');

function byHand(goal: HostGoal = HostGoal.AVAILABLE): Bench {
  const host = bench({
    bmc: { protocol: BmcProtocol.MANUAL },
    goal,
    cleaning: { allowUnprovenIdentity: true },
  });
  tick(host);
  host.report(done);
  return host;
}

/** Waits for a person to switch it off, before its first boot. */
function atOff(): Bench {
  const host = byHand(HostGoal.MANAGEABLE);
  host.request({ kind: 'inspect' });
  return host;
}

function say(host: Bench, on: boolean, actor = 'user:ann') {
  return host.apply({
    kind: 'request',
    request: { kind: 'confirmPower', on },
    by: { actor: readActor(actor) },
  });
}

function passTo(host: Bench, ms: number): void {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session !== undefined) {
    host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  }
  tick(host);
}

test('a host without a BMC is verified: nothing was proved, and its power is not told', () => {
  const host = byHand(HostGoal.MANAGEABLE);
  const { state, poweredOn, bmcIdentity } = statusOf(host);
  expect({ state, poweredOn, bmcIdentity }).toEqual({
    state: HostState.MANAGEABLE,
    poweredOn: undefined,
    bmcIdentity: undefined,
  });
});

test('silence never says that the host is off, however long it lasts', () => {
  const host = atOff();
  passTo(host, weeksMs);
  expect(statusOf(host).run?.phase).toBe(RunPhase.WAITING);
  expect(waiting(host)).toBe('person');
  expect(statusOf(host).poweredOn).toBeUndefined();
  expect(host.record.operation?.sentTo).toBeUndefined();
});

test('the word that a host is off is recorded with the person who gave it', () => {
  const host = atOff();
  expect(sends(say(host, false))).toEqual(['send']);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ poweredOn: false, powerWord: { by: 'user:ann' } });
  expect(statusOf(host).run?.steps[0]?.word?.by).toBe('user:ann');
  expect(host.record.change?.actor).not.toBe('user:bob');
});

test.each([
  ['that it is on, while it shall be off', atOff, true],
  ['anything, while nobody asks', () => byHand(HostGoal.MANAGEABLE), false],
] as const)('a person’s word is refused that says %s', (_text, at, on) => {
  const host = at();
  const before = host.record;
  const by = { actor: userActor('ann') };
  const outcome = host.try({ kind: 'request', request: { kind: 'confirmPower', on }, by });
  expect(outcome).toMatchObject({ kind: 'refused' });
  expect(host.record).toBe(before);
});

test('a person’s word is kept that is given while the agent is away', () => {
  const host = atOff();
  const { session } = host.snapshot;
  host.snapshot = { ...host.snapshot, session: undefined };
  tick(host);
  expect(sends(say(host, false))).toEqual([]);
  host.snapshot = { ...host.snapshot, session };
  expect(sends(tick(host))).toEqual(['send']);
});

test('a person’s word counts for no later request', () => {
  const host = atOff();
  say(host, false);
  host.report(done);
  const by = { actor: userActor('ann') };
  const again = host.try({ kind: 'request', request: { kind: 'confirmPower', on: false }, by });
  expect(again).toMatchObject({ kind: 'refused', refusal: { reason: 'nothingToDo' } });
});

test('a host with a BMC never takes the word of a person', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  tick(host);
  host.report(verified());
  host.request({ kind: 'inspect' });
  const by = { actor: userActor('ann') };
  const outcome = host.try({ kind: 'request', request: { kind: 'confirmPower', on: false }, by });
  expect(outcome).toMatchObject({ kind: 'refused', refusal: { reason: 'nothingToDo' } });
});

test('a runner reports itself that it is up: no person’s word is needed or counts', () => {
  const host = atOff();
  say(host, false);
  host.report(done);
  const { kind } = host.operation();
  const expiry = kind.case === 'setPower' ? kind.value.grantExpireTime : undefined;
  expect(expiry && timestampMs(expiry)).toBeGreaterThan(host.nowMs + weeksMs);
  host.report(done);
  expect(stepAt(host)).toBe('runner.await');
  expect(statusOf(host).poweredOn).toBeUndefined();
  passTo(host, weeksMs);
  expect(waiting(host)).toBe('person');
  const by = { actor: userActor('ann') };
  const outcome = host.try({ kind: 'request', request: { kind: 'confirmPower', on: true }, by });
  expect(outcome).toMatchObject({ kind: 'refused' });
  host.runnerReady();
  expect(stepAt(host)).toBe('runner.inspect');
  expect(statusOf(host)).toMatchObject({ poweredOn: true });
  expect(statusOf(host).powerWord).toBeUndefined();
});

test('the wait for a person does not count as time of the run', () => {
  const host = atOff();
  const before = statusOf(host).run?.deadline;
  passTo(host, weeksMs);
  say(host, false);
  const { deadline } = statusOf(host).run ?? {};
  expect(deadline && before && timestampMs(deadline) - timestampMs(before)).toBe(weeksMs);
});

test('an order that was cut short is given again without a second question', () => {
  const host = atOff();
  say(host, false);
  const effects = host.report(failed('interrupted'));
  expect(sends(effects)).toEqual(['send']);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ poweredOn: false, powerWord: { by: 'user:ann' } });
});

test('a boot that begins again asks the person again', () => {
  const host = atOff();
  say(host, false);
  host.report(done);
  host.report(done);
  const journal = journalOf(host);
  host.apply({ kind: 'hello', journal, listed: [], grants: [] });
  expect(stepAt(host)).toBe('power.off');
  expect(waiting(host)).toBe('person');
  expect(statusOf(host).run?.steps[0]?.word).toBeUndefined();
});

function journalOf({ snapshot }: Bench): agent.Journal {
  if (snapshot.session === undefined) throw new Error('no session');
  return snapshot.session.journal;
}

test('an abort ends a request at once, and its host may be deleted meanwhile', () => {
  const host = atOff();
  const deletion = host.try({
    kind: 'request',
    request: { kind: 'delete', reason: 'sold' },
    by: { actor: userActor('ann') },
  });
  expect(deletion.kind).toBe('kept');
  host.request({ kind: 'abort', reason: 'not today' });
  expect(statusOf(host).run).toMatchObject({
    phase: RunPhase.ENDED,
    outcome: RunOutcome.CANCELLED,
  });
});

test('without the policy nothing is written to what nothing proves to be the host', () => {
  const host = bench({ bmc: { protocol: BmcProtocol.MANUAL } });
  tick(host);
  host.report(done);
  say(host, false);
  driveToInspect(host);
  host.report(inspected());
  host.report(inspected());
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.IDENTITY_UNPROVEN);
});

test('a netboot that nobody ordered is taken as true, for no BMC could say otherwise', () => {
  const host = byHand(HostGoal.MANAGEABLE);
  makeAvailable(host);
  const epoch = statusOf(host).useEpoch;
  const unexpectedNetboot = { hostUid: 'u1', mac: '52:54:00:00:00:01' };
  const value = create(agent.HostUpdatedSchema, { observations: { unexpectedNetboot } });
  const result = { case: 'hostUpdated', value } as const;
  const report = create(agent.ReportSchema, { hostUid: 'u1', result });
  host.apply({ kind: 'report', report });
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).useEpoch).toBeGreaterThan(epoch);
});

test('a person is given no deadline in which a system should stop', () => {
  const host = byHand(HostGoal.MANAGEABLE);
  statusOf(host).state = HostState.PROVISIONED;
  host.request({ kind: 'powerOff' });
  say(host, false);
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.shutdownDeadline).toBeUndefined();
  host.report(done);
  expect(statusOf(host).run?.steps[0]?.shutdown).toBeUndefined();
});

test('a forced removal waits for no person longer than for a BMC', () => {
  const host = byHand(HostGoal.MANAGEABLE);
  const mode = DeletionMode.FORCE;
  statusOf(host).poweredOn = true;
  host.request({ kind: 'delete', mode, reason: 'scrapped' });
  expect(waiting(host)).toBe('person');
  passTo(host, 120_000);
  expect(stepAt(host)).toBe('host.forget');
  expect(statusOf(host).poweredOn).toBe(true);
});

test('the policy lets the host be cleaned, switched by words and its own runner alone', () => {
  const host = byHand();
  say(host, false);
  driveToInspect(host);
  host.report(inspected());
  host.report(inspected());
  const { kind } = host.operation();
  if (kind.case !== 'runStep') throw new Error(`an erasure, not ${kind.case}`);
  expect(kind.value.allowUnprovenIdentity).toBe(true);
  const evidence = host.evidence([erased(virtioDisk)], { identityWitnesses: [] });
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected());
  expect(stepAt(host)).toBe('power.off');
  expect(waiting(host)).toBe('person');
  say(host, false);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
});
