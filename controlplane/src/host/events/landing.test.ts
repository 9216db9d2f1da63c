/** The host after a run: erasure before removal, claims and errors. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  FailureType,
  FaultClearing,
  FaultSeverity,
  HostState,
  hasFault,
  RunKind,
  RunOutcome,
  type RunStepSchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { defaultTiming } from '../pass/timing.ts';
import { did, type Init, landed, nowMs } from './landing.fixture.ts';

const { AVAILABLE, MANAGEABLE, PROVISIONED } = HostState;
const { ADOPT, WORKFLOW, RELEASE, POWER, INSPECT, SERVICE, VERIFY } = RunKind;
const { SUCCEEDED, FAILED, CANCELLED } = RunOutcome;

test.each<[string, Init<typeof RunStepSchema>, boolean]>([
  ['destroyed something', did('run.script', { destructive: true }), true],
  ['was to destroy something', { name: 'run.script', destructive: true }, false],
  ['only looked', did('run.script'), false],
  ['handed the host over', did('run.script', { handOff: true }), true],
  ['was to hand it over', { name: 'run.script', handOff: true }, false],
  ['booted the disk, as its template says', did('power.on', { title: 'boot' }), true],
  ['gave the power back as it was', did('power.on'), false],
  ['switched it off, as its template says', did('power.off', { title: 'off' }), false],
])('a host is erased before it goes, or not, after a workflow that %s', (_name, step, erases) => {
  for (const outcome of [FAILED, SUCCEEDED]) {
    const { record } = landed({ kind: WORKFLOW, outcome, steps: [step] });
    expect(record.eraseBeforeRemoval).toBe(erases);
  }
});

test('a host that runs an image is erased before it goes, whatever a workflow has done', () => {
  const run = { kind: WORKFLOW, outcome: FAILED, steps: [did('run.script')] };
  expect(landed(run, { state: PROVISIONED }).record.eraseBeforeRemoval).toBe(true);
});

test.each<[string, string, number, boolean]>([
  ['of who gives it back', 'user:ann', nowMs - 5_000, false],
  ['made at the moment of the release', 'user:ann', nowMs - 1_000, false],
  ['made since for another use', 'user:ann', nowMs - 999, true],
  ['of somebody else', 'user:bob', nowMs - 5_000, true],
])('a claim %s outlives a release, or ends with it', (_name, by, atMs, stays) => {
  const claim = { by, reason: 'db', at: timestampFromMs(atMs) };
  const run = { kind: RELEASE, outcome: SUCCEEDED };
  const { status } = landed(run, { state: PROVISIONED, claim });
  expect(status.claim !== undefined).toBe(stays);
  const failed = landed({ ...run, outcome: FAILED }, { state: PROVISIONED, claim });
  expect(failed.status.claim?.by).toBe(by);
});

test('a host on unseen for longer than an agent may be silent is available no more', () => {
  const { contactDeadlineMs } = defaultTiming;
  const switchedOff = (agoMs: number, requestedBy: string, outcome: RunOutcome = SUCCEEDED) => {
    const startTime = timestampFromMs(nowMs - agoMs);
    const run = { kind: POWER, outcome, requestedBy, startTime };
    return landed(run, { state: AVAILABLE }).status.state;
  };
  expect(switchedOff(contactDeadlineMs, 'system')).toBe(AVAILABLE);
  expect(switchedOff(contactDeadlineMs + 1, 'system')).toBe(MANAGEABLE);
  expect(switchedOff(contactDeadlineMs + 1, 'user:ann')).toBe(AVAILABLE);
});

const error = { type: FailureType.IO_ERROR, message: 'no' };

test('the error of a run is told, unless a person stopped a look or the goal has one', () => {
  const failed = landed({ kind: INSPECT, outcome: FAILED, error }).status;
  expect(failed.lastError).toMatchObject({ runKind: INSPECT, failure: error });
  const stopped = landed({ kind: INSPECT, outcome: CANCELLED, error }).status;
  expect(stopped.lastError).toBeUndefined();
  const backoff = { failures: 1 };
  const goals = { runKind: INSPECT, failure: { type: FailureType.NO_DEVICES } };
  const beside = landed({ kind: SERVICE, outcome: FAILED, error }, { backoff, lastError: goals });
  expect(beside.status.lastError).toMatchObject(goals);
  // It was not a run for the goal: the goal's retry is not delayed by it.
  expect(beside.status.backoff?.failures).toBe(1);
  const alone = landed({ kind: SERVICE, outcome: FAILED, error }).status;
  expect(alone.lastError).toMatchObject({ runKind: SERVICE });
  expect(alone.backoff).toBeUndefined();
});

test('an error is over with the same work, and with any step towards the goal', () => {
  const ended = (kind: RunKind, ofKind: RunKind) => {
    const lastError = { runKind: ofKind, failure: error };
    return landed({ kind, outcome: SUCCEEDED }, { lastError, backoff: { failures: 2 } }).status;
  };
  expect(ended(SERVICE, SERVICE).lastError).toBeUndefined();
  expect(ended(SERVICE, SERVICE).backoff?.failures).toBe(2);
  expect(ended(SERVICE, INSPECT).lastError).toBeDefined();
  expect(ended(INSPECT, SERVICE).lastError).toBeUndefined();
  expect(ended(INSPECT, SERVICE).backoff).toBeUndefined();
});

test('faults until the next success are cleared by a success, but not by restored power', () => {
  const fault = {
    type: 'reimageFailed',
    clearing: FaultClearing.ANY_RUN,
    severity: FaultSeverity.WARNING,
  };
  const after = (requestedBy: string, outcome: RunOutcome) => {
    const run = { kind: POWER, outcome, requestedBy };
    const { faults } = landed(run, { state: PROVISIONED, faults: [fault] }).status;
    return hasFault(faults, 'reimageFailed');
  };
  expect(after('user:ann', SUCCEEDED)).toBe(false);
  expect(after('system', SUCCEEDED)).toBe(true);
  expect(after('user:ann', FAILED)).toBe(true);
});

test('the first proof of its BMC makes a new host manageable; a failed one does not', () => {
  const verify = (outcome: RunOutcome) =>
    landed({ kind: VERIFY, outcome }, { state: HostState.NEW }).status.state;
  expect([verify(SUCCEEDED), verify(FAILED)]).toEqual([MANAGEABLE, HostState.NEW]);
});

test('an adopted host has a new use: a person may have written to its disks', () => {
  const after = (outcome: RunOutcome) =>
    landed({ kind: ADOPT, outcome }, {}, { record: { adoptTo: HostState.EXTERNAL } }).status;
  expect(after(SUCCEEDED)).toMatchObject({ state: HostState.EXTERNAL, dirty: true, useEpoch: 2n });
  expect(after(FAILED)).toMatchObject({ state: MANAGEABLE, useEpoch: 1n });
});
