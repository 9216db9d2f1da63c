import { create } from '@bufbuild/protobuf';
import {
  agent,
  BmcIdentitySchema,
  HoldScope,
  HostState,
  RerunClass,
  RunKind,
  RunOutcome,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { done, failed, verified } from '../testing/bench.ts';
import { manageable, provisioned, refusalOf, runKind, statusOf } from '../testing/deleting.ts';

/** A clean host that is being verified. */
function verifying() {
  const host = manageable();
  statusOf(host).dirty = false;
  host.request({ kind: 'verify' });
  return host;
}

/** Another machine has replaced the host's. */
function anotherMachine(): agent.Report['result'] {
  const guid = Uint8Array.from({ length: 16 }, (_, index) => 200 - index);
  const bmcIdentity = create(BmcIdentitySchema, { guid, serial: 'OTHER' });
  const value = create(agent.CompleteSchema, { observations: { bmcIdentity } });
  return { case: 'complete', value };
}

test.each(['powerOn', 'powerReset'] as const)(
  'a %s accepted of a clean host is dropped when a verify found it dirty',
  (kind) => {
    const host = verifying();
    host.request({ kind, bootOldDiskReason: '' });
    host.report(anotherMachine());
    expect(statusOf(host)).toMatchObject({ dirty: true, run: { kind: RunKind.VERIFY } });
    expect(runKind(host)).toBeUndefined();
    expect(host.record.pendingPower).toBeUndefined();
    const cause = expect.stringMatching(/dropped before it began \(.*user:test\).*old_disk_reason/);
    expect(host.record.change).toMatchObject({ cause });
  },
);

test('a power command with a reason for the old disk goes on after the verify', () => {
  const host = verifying();
  host.request({ kind: 'powerOn', bootOldDiskReason: 'forensics' });
  host.report(anotherMachine());
  expect(runKind(host)).toBe(RunKind.POWER);
});

test('no power command goes to a BMC of which a verify could not prove whose it is', () => {
  const host = verifying();
  host.request({ kind: 'powerOff' });
  host.report(failed('identityMismatch', 'another'));
  expect(runKind(host)).toBeUndefined();
  expect(host.record.pendingPower).toBeUndefined();
  const cause = expect.stringContaining('dropped before it began (power.off for user:test)');
  expect(host.record.change).toMatchObject({ cause });
});

test('a power command outlives a verify that a person aborted', () => {
  const host = verifying();
  host.request({ kind: 'powerOff' });
  host.request({ kind: 'abort', reason: 'later' });
  host.report(failed('cancelled'));
  expect(runKind(host)).toBe(RunKind.POWER);
  host.report(done);
  expect(statusOf(host).run).toMatchObject({ outcome: RunOutcome.SUCCEEDED });
});

test('a power command of somebody else is dropped when the host was claimed meanwhile', () => {
  const host = manageable();
  statusOf(host).state = HostState.PROVISIONED;
  host.request({ kind: 'verify' });
  host.request({ kind: 'powerOff' });
  const by = { actor: userActor('ann') };
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'db' }, by });
  host.report(verified());
  expect(runKind(host)).toBeUndefined();
  expect(host.record.change?.cause).toContain('claimed by user:ann');
});

test.each([
  { kind: 'service', steps: [{ step: 'hold', arguments: {} }] },
  { kind: 'rescue', reason: 'x' },
  { kind: 'powerOff' },
  { kind: 'powerReset', bootOldDiskReason: 'x' },
] as const)('$kind of a host that another claims is refused', (request) => {
  const host = manageable();
  const by = { actor: userActor('ann') };
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'db' }, by });
  expect(refusalOf(host, request)).toMatch(/claimed by user:ann .*must be unclaimed first/);
  const outcome = host.try({ kind: 'request', request, by });
  expect(outcome.kind).toBe('kept');
});

/** A host in use whose service was held, and failed after it had switched the host off. */
function failedService() {
  const host = provisioned();
  const runnerSteps = [create(agent.StepDescriptionSchema, { name: 'bios.set', rerunClass })];
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, runnerSteps } };
  host.request({ kind: 'service', steps: [{ step: 'bios.set', arguments: {} }] });
  host.report(done);
  host.request(holding);
  host.report(failed('notApplied'));
  expect(host.record.pendingPower).toMatchObject({ by: 'system', steps: [off, on] });
  return host;
}

const rerunClass = RerunClass.SAFE;
const [off, on] = ['power.off', 'power.on'];
const holding = { kind: 'hold', scope: HoldScope.WORK, reason: 'r', untilMs: undefined } as const;
const lifting = { kind: 'releaseHold', hold: '', reason: 'x' } as const;

test('a host in use is restarted once its hold is lifted, for its service left it off', () => {
  const host = failedService();
  host.request(lifting);
  expect(runKind(host)).toBe(RunKind.POWER);
});

test('a host in use that somebody has switched on again is not restarted', () => {
  const host = failedService();
  const observations = { poweredOn: true };
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated', value } as const;
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
  host.request(lifting);
  expect(runKind(host)).toBeUndefined();
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, poweredOn: true });
});

test('the user of a host has its power in hand: the system restores it no more', () => {
  const host = failedService();
  host.request({ ...holding, scope: HoldScope.POWER, reason: 'I look after it' });
  expect(host.record.change?.cause).toContain('dropped before it began');
  host.request(lifting);
  expect(runKind(host)).toBeUndefined();
});

test('a power command of a person outlives a hold', () => {
  const host = verifying();
  host.request({ kind: 'powerOff' });
  host.request(holding);
  expect(host.record.pendingPower?.by).toBe('user:test');
});
