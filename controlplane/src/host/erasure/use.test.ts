/** A host that somebody else boots during a clean: its erasures no longer count. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  FailureType,
  HostGoal,
  HostState,
  RerunClass,
  RunKind,
  RunOutcome,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const status = (host: Bench) => {
  const found = host.record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
};

function observe(host: Bench, seen: MessageInitShape<typeof agent.ObservationsSchema>): void {
  const observations = create(agent.ObservationsSchema, seen);
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
}

const netboot = { unexpectedNetboot: { hostUid: 'u1', mac: '52:54:00:00:00:01' } };

function erase(host: Bench): void {
  const value = create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) });
  host.report({ case: 'complete', value });
  host.report(inspected());
}

/** An automatic clean during its last power off, with erased and inspected disks. */
function atLastOff(): Bench {
  const host = bench();
  driveToErase(host);
  erase(host);
  expect(host.operation().kind).toMatchObject({ case: 'setPower', value: { on: false } });
  return host;
}

/** A clean from a person's list: erased, switched off, and held there. */
function heldAfterErasing(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const name = 'deploy.erase_devices';
  const described = create(agent.StepDescriptionSchema, { name, rerunClass: RerunClass.SAFE });
  host.snapshot = {
    ...host.snapshot,
    facts: { ...host.snapshot.facts, runnerSteps: [described] },
  };
  const steps = [name, 'powerOff', 'hold'].map((step) => ({ step, arguments: {} }));
  host.request({ kind: 'clean', steps });
  driveToInspect(host);
  host.report(inspected());
  erase(host);
  host.report(done);
  expect(status(host).run?.waiting?.reason).toBe('hold');
  return host;
}

function expectNotClean(host: Bench, epoch = 2n): void {
  expect(status(host)).toMatchObject({ dirty: true, useEpoch: epoch });
  expect(status(host).state).toBe(HostState.MANAGEABLE);
  expect(status(host).lastError).toMatchObject({ failure: { type: FailureType.NOT_CERTIFIED } });
}

describe('a clean whose disks are erased', () => {
  test('does not end well when its host is seen on while the list holds it off', () => {
    const host = heldAfterErasing();
    observe(host, { poweredOn: true });
    host.request({ kind: 'resume', reason: '' });
    expect(status(host).run?.outcome).toBe(RunOutcome.FAILED);
    expectNotClean(host);
  });

  test('ends well when a netboot is claimed of its host that its BMC says is off', () => {
    const host = heldAfterErasing();
    observe(host, netboot);
    host.request({ kind: 'resume', reason: '' });
    expect(status(host)).toMatchObject({ dirty: false, useEpoch: 1n });
  });

  test('ends well when nobody touches the host while the list holds it off', () => {
    const host = heldAfterErasing();
    observe(host, { poweredOn: false });
    host.request({ kind: 'resume', reason: '' });
    expect(status(host)).toMatchObject({ dirty: false, useEpoch: 1n });
  });

  test.each([
    ['netboots', [netboot]],
    ['is seen off and on again', [{ poweredOn: false }, { poweredOn: true }]],
  ])('makes no host available that %s before it is switched off', (_text, seen) => {
    const host = atLastOff();
    for (const each of seen) observe(host, each);
    host.report(done);
    expectNotClean(host);
    host.nowMs += 3_600_000;
    host.apply({ kind: 'tick' });
    expect(status(host).run).toMatchObject({ kind: RunKind.CLEAN, number: 4n });
  });

  test('makes a host available that is still on from its own boot until it is switched off', () => {
    const host = atLastOff();
    observe(host, { poweredOn: true });
    host.report(done);
    expect(status(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false, useEpoch: 1n });
  });
});

test('an available host switched on before its inspection has sent the order is used', () => {
  const host = atLastOff();
  host.report(done);
  host.request({ kind: 'inspect' });
  const { session, ...alone } = host.snapshot;
  host.snapshot = { ...alone, session: undefined };
  host.report(done);
  expect(status(host).run?.waiting?.reason).toBe('agent');
  host.snapshot = { ...alone, session };
  observe(host, { poweredOn: true });
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('anybody may claim a netboot of an available host: only its BMC makes it a used one', () => {
  const host = atLastOff();
  host.report(done);
  observe(host, netboot);
  expect(status(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false, useEpoch: 1n });
  observe(host, { poweredOn: true });
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true, useEpoch: 2n });
});
