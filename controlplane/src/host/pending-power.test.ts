import { create } from '@bufbuild/protobuf';
import { agent, BmcIdentitySchema, HostState, RunKind, RunOutcome } from '@rackwright/api';
import { expect, test } from 'vitest';
import { done, failed, verified } from './testing/bench.ts';
import { manageable, refusalOf, runKind, statusOf } from './testing/deleting.ts';

/** A clean host that is being verified. */
function verifying() {
  const host = manageable();
  statusOf(host).dirty = false;
  host.request({ kind: 'verify' });
  return host;
}

/** Another machine stands where the host did. */
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
  const by = { actor: 'user:ann' };
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
  const by = { actor: 'user:ann' };
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'db' }, by });
  expect(refusalOf(host, request)).toMatch(/claimed by user:ann .*must be unclaimed first/);
  const outcome = host.try({ kind: 'request', request, by });
  expect(outcome.kind).toBe('kept');
});
