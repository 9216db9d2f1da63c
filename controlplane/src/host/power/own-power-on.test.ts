/** Power that is on already: by an order of ours, or by somebody else. */

import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { agent, FailureType, HostGoal, HostState, RunKind, RunOutcome } from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  failed,
  inspected,
  statusOf,
  verified,
} from '../testing/bench.ts';
import { passTime } from '../testing/templates.ts';

const powerOn = { kind: 'powerOn', bootOldDiskReason: 'a look' } as const;
const isOnAlready: agent.Report['result'] = {
  case: 'retryAfter',
  value: create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.INVALID_STATE,
    message: 'the host is on already',
    delay: durationFromMs(10_000),
  }),
};

/** An agent's answer while it lacks a lease or a credential. */
const notReady: agent.Report['result'] = {
  case: 'retryAfter',
  value: create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.NOT_READY,
    message: 'the credential credentials/c1 version 2 has not come',
    delay: durationFromMs(10_000),
  }),
};

function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

test('power on of a host that our own power on has switched on succeeds', () => {
  const host = manageable();
  host.request(powerOn);
  host.report(done);
  host.request(powerOn);
  host.report(isOnAlready);
  expect(statusOf(host).run).toMatchObject({ number: 3n, outcome: RunOutcome.SUCCEEDED });
  expect(statusOf(host)).toMatchObject({ faults: [], poweredOn: true });
  expect(statusOf(host).lastError).toBeUndefined();
});

test('power on succeeds after one whose answer was lost, and its fault is over', () => {
  const host = manageable();
  host.request(powerOn);
  host.report(failed('notApplied', 'it still says off'));
  expect(statusOf(host).faults).toMatchObject([{ type: 'powerFailed' }]);
  host.request(powerOn);
  host.report(isOnAlready);
  expect(statusOf(host)).toMatchObject({ run: { outcome: RunOutcome.SUCCEEDED }, faults: [] });
  expect(statusOf(host).lastError).toBeUndefined();
});

test('an agent that lacks the credential of a power on says nothing of the host', () => {
  const host = manageable();
  host.request(powerOn);
  host.report(notReady);
  expect(statusOf(host).run).toMatchObject({ outcome: RunOutcome.UNSPECIFIED });
  expect(statusOf(host).poweredOn).not.toBe(true);
  passTime(host, 10_000);
  host.report(notReady);
  expect(statusOf(host).run).toMatchObject({ outcome: RunOutcome.UNSPECIFIED });
  expect(statusOf(host).poweredOn).not.toBe(true);
  passTime(host, 10_000);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ run: { outcome: RunOutcome.SUCCEEDED }, poweredOn: true });
});

test('power on of a host that somebody else has switched on is a conflict, and stays one', () => {
  const host = manageable();
  for (let n = 0; n < 2; n += 1) {
    host.request(powerOn);
    host.report(isOnAlready);
    expect(statusOf(host).run?.error?.type).toBe(FailureType.CONFLICT);
  }
});

test('power on of a host that was switched off since our own is a conflict', () => {
  const host = manageable();
  host.request(powerOn);
  host.report(done);
  host.request({ kind: 'powerOff' });
  host.report(done);
  host.request(powerOn);
  host.report(isOnAlready);
  expect(statusOf(host).run?.error?.type).toBe(FailureType.CONFLICT);
});

test('an aborted inspection is no error of its host, and leaves it off', () => {
  const host = manageable();
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.request({ kind: 'abort', reason: 'another day' });
  host.report(failed('cancelled'));
  expect(statusOf(host).lastError).toBeUndefined();
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.POWER });
  expect(host.operation().kind).toMatchObject({ case: 'setPower', value: { on: false } });
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, poweredOn: false });
});

test('an inspection that failed is forgotten once one succeeds, also within a clean', () => {
  const host = manageable();
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(failed('ioError'));
  expect(statusOf(host).lastError?.run).toBe('inspect 2');
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(inspected());
  host.report(done);
  expect(statusOf(host)).toMatchObject({ faults: [] });
  expect(statusOf(host).lastError).toBeUndefined();
});
