/** The state after a failed clean: the runner for a while, a run to resume, a limit. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  FailureType,
  HoldScope,
  HostGoal,
  HostState,
  isGivenUp,
  RerunClass,
  RunKind,
  RunOutcome,
  RunPhase,
  StepState,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { nextWakeMs } from '../shell/wake.ts';
import {
  type Bench,
  bench,
  bootOfRunner,
  done,
  driveToErase,
  driveToInspect,
  erased,
  failed,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const minuteMs = 60_000;

const statusOf = (host: Bench) => {
  const status = host.record.host?.status;
  if (status === undefined) throw new Error('no status');
  return status;
};
const runOf = (host: Bench) => {
  const { run } = statusOf(host);
  if (run === undefined) throw new Error('no run');
  return run;
};

const erasedWell = (host: Bench): agent.Report['result'] => ({
  case: 'complete',
  value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
});

/** A host with the goal manageable, at the erase step of a clean. */
function atErase(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  host.report(inspected());
  return host;
}

const resume = { kind: 'resume', reason: 'the disk was plugged in again' } as const;

test('a failed clean leaves the host in the runner, and off half an hour later', () => {
  const host = atErase();
  host.report(failed('ioError', 'the disk gave an error'));
  expect(statusOf(host).afterFailure).toMatchObject({ bootOnly: 'runner', run: 'clean 2' });
  const untilMs = nextWakeMs(host.record, host.nowMs + 29 * minuteMs);
  expect(untilMs).toBe(host.nowMs + 30 * minuteMs);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.causes.map(({ text }) => text).join()).toContain('it stays in the runner until');
  expect(told.unblock.join()).toContain('rackwright host resume h1');
  host.nowMs += 29 * minuteMs;
  host.apply({ kind: 'tick' });
  expect(host.record.operation).toBeUndefined();
  host.nowMs += minuteMs;
  host.apply({ kind: 'tick' });
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.on).toBe(false);
  expect(runOf(host)).toMatchObject({ kind: RunKind.POWER, requestedBy: 'system' });
  host.report(done);
  expect(statusOf(host).afterFailure?.runnerUntil).toBeUndefined();
  expect(statusOf(host).afterFailure?.bootOnly).toBe('runner');
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.IO_ERROR);
  host.nowMs += 24 * 60 * minuteMs;
  expect(host.apply({ kind: 'tick' })).toEqual([]);
});

test('a clean that has not booted the host leaves its power alone', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  statusOf(host).poweredOn = true;
  host.request({ kind: 'clean', steps: [] });
  host.report(failed('protocol', 'the BMC does not answer'));
  expect(statusOf(host).afterFailure).toMatchObject({ bootOnly: 'runner', run: 'clean 2' });
  expect(statusOf(host).afterFailure?.runnerUntil).toBeUndefined();
  host.nowMs += 24 * 60 * minuteMs;
  host.apply({ kind: 'tick' });
  expect(host.record.operation, 'what runs from its disk runs on').toBeUndefined();
});

test('switching off that fails is a fault of its own, and tried again later, not at once', () => {
  const host = atErase();
  host.report(failed('ioError'));
  host.nowMs += 30 * minuteMs;
  host.apply({ kind: 'tick' });
  host.report(failed('notApplied', 'the BMC says yes and does nothing'));
  expect(
    statusOf(host)
      .faults.map(({ type }) => type)
      .sort(),
  ).toEqual(['cleanFailed', 'powerFailed']);
  expect(statusOf(host).lastError?.failure?.type, 'the first error stays').toBe(
    FailureType.IO_ERROR,
  );
  expect(host.record.operation).toBeUndefined();
  host.nowMs += 30 * minuteMs;
  host.apply({ kind: 'tick' });
  host.report(done);
  expect(statusOf(host).faults.map(({ type }) => type)).toEqual(['cleanFailed']);
});

test('a host whose power is held, or that a person uses, is not switched off', () => {
  for (const keep of ['hold', 'claim'] as const) {
    const host = atErase();
    host.report(failed('ioError'));
    const scope = HoldScope.POWER;
    if (keep === 'claim') host.request({ kind: 'claim', reason: 'looking at it' });
    else host.request({ kind: 'hold', scope, reason: 'looking at it', untilMs: undefined });
    host.nowMs += 60 * minuteMs;
    host.apply({ kind: 'tick' });
    expect(host.record.operation, keep).toBeUndefined();
  }
});

test('a failed clean is resumed from the step that failed, in the runner that is there', () => {
  const host = atErase();
  const boot = bootOfRunner(runOf(host));
  host.report(failed('ioError'));
  const devices = host.record.devicePlan;
  host.request(resume);
  const run = runOf(host);
  expect(run).toMatchObject({ kind: RunKind.CLEAN, number: 3n, resumes: 'clean 2' });
  expect(run.steps.slice(0, 4).map(({ state }) => state)).toEqual(
    Array(4).fill(StepState.SUCCEEDED),
  );
  const { id, kind } = host.operation();
  expect(id).toBe('u1/3/4/1');
  expect(kind.case === 'runStep' && kind.value).toMatchObject({ bootOperationId: boot, devices });
  expect(statusOf(host).afterFailure).toBeUndefined();
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(statusOf(host)).toMatchObject({ dirty: false, faults: [] });
});

test('a resumed clean begins to wipe only with a slot of its own in the budget', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const steps = ['deploy.erase_devices_metadata', 'deploy.erase_devices'];
  host.request({ kind: 'clean', steps: steps.map((step) => ({ step, arguments: {} })) });
  driveToInspect(host);
  host.report(inspected());
  const { METADATA_ONLY } = agent.ErasureMethod;
  const evidence = host.evidence([erased(virtioDisk, METADATA_ONLY)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(failed('ioError'));
  const quota = { kind: 'inStretch', hosts: 1, stretchMs: 600_000 } as const;
  const quotaViews = [{ name: 'rackWipes', quota, own: [], nextSlotMs: undefined }] as const;
  host.snapshot = { ...host.snapshot, quotaViews };
  const effects = host.request(resume);
  expect(runOf(host)).toMatchObject({
    phase: RunPhase.WAITING,
    waiting: { reason: 'wipeBudget' },
  });
  expect(effects).toContainEqual(
    expect.objectContaining({ kind: 'quota', change: expect.objectContaining({ kind: 'take' }) }),
  );
});

test('an automatic clean that is resumed leads where it was going', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('notErased'));
  host.request(resume);
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
});

test('without its runner a resumed clean boots again, and erases everything again', () => {
  const host = atErase();
  host.report(erasedWell(host));
  host.report(failed('ioError', 'the second look failed'));
  expect(host.record.certified).toHaveLength(1);
  host.nowMs += 30 * minuteMs;
  host.apply({ kind: 'tick' });
  host.report(done);
  host.request(resume);
  expect(runOf(host).currentStep).toBe(0);
  expect(host.record.certified).toEqual([]);
  driveToInspect(host);
  host.report(inspected());
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
});

test('a resumed clean whose runner is away after all boots the host again', () => {
  const host = atErase();
  host.report(failed('ioError'));
  host.request(resume);
  const value = create(agent.TransientErrorSchema, {
    cause: TransientCause.RUNNER_AWAY,
    message: 'not there',
  });
  host.report({ case: 'transientError', value });
  expect(runOf(host).steps[runOf(host).currentStep]?.name).toBe('power.off');
});

test('no clean is resumed once the old disk was booted, or another clean succeeded', () => {
  const host = atErase();
  host.report(failed('ioError'));
  host.request({ kind: 'powerReset', bootOldDiskReason: 'read its logs' });
  host.report(done);
  host.report(done);
  expect(statusOf(host).afterFailure).toBeUndefined();
  const outcome = host.try({ kind: 'request', request: resume, by: { actor: userActor('test') } });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain('ask for a clean');
});

test('powering on after a failed clean names what boots without the old disk', () => {
  const host = atErase();
  host.report(failed('ioError'));
  const request = { kind: 'powerOn', bootOldDiskReason: '' } as const;
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toMatch(/rescue.*the runner/);
});

test('a step that never runs twice and failed is not run again by an automatic clean', () => {
  const host = bench();
  driveToErase(host);
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  const flash = create(agent.StepDescriptionSchema, {
    name: 'firmware.flash',
    priority: 50,
    rerunClass: RerunClass.NEVER_TWICE,
  });
  const erase = create(agent.StepDescriptionSchema, { name: 'deploy.erase_devices', priority: 10 });
  const { facts } = host.snapshot;
  host.snapshot = { ...host.snapshot, facts: { ...facts, runnerSteps: [flash, erase] } };
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  host.report(inspected());
  host.report(failed('internal', 'the tool ended with code 1'));
  expect(statusOf(host).backoff?.givenUpReason).toBe('firmware.flash never runs twice by itself');
});

test('a host that becomes external ends the wait after a failed clean, and keeps its power', () => {
  const host = atErase();
  host.report(failed('ioError'));
  host.request({ kind: 'adopt', to: HostState.EXTERNAL, reason: 'handed over' });
  host.report(verified());
  expect(statusOf(host)).toMatchObject({ state: HostState.EXTERNAL });
  expect(statusOf(host).afterFailure).toBeUndefined();
  host.nowMs += 60 * minuteMs;
  host.apply({ kind: 'tick' });
  expect(host.record.operation, 'its power is not ours').toBeUndefined();
});

test('a host is cleaned again by itself a limited number of times, and shows the count', () => {
  const host = bench();
  host.snapshot = {
    ...host.snapshot,
    timing: { ...host.snapshot.timing, goalFailuresMax: 10, automaticRecleansMax: 2 },
  };
  driveToErase(host);
  for (const recleans of [1, 2]) {
    host.report(failed('ioError'));
    expect(isGivenUp(statusOf(host).backoff)).toBe(false);
    host.nowMs += 20 * minuteMs;
    host.apply({ kind: 'tick' });
    expect(statusOf(host).automaticRecleans).toBe(recleans);
    driveToInspect(host);
    host.report(inspected());
  }
  host.report(failed('ioError'));
  expect(statusOf(host).backoff?.givenUpReason).toBe('it has been cleaned again 2 times by itself');
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.causes.map(({ text }) => text)).toContain('cleaned again 2 times by itself');
  host.nowMs += 29 * minuteMs;
  host.apply({ kind: 'tick' });
  expect(runOf(host).phase).toBe(RunPhase.ENDED);
  host.request({ kind: 'clean', steps: [] });
  expect(statusOf(host).automaticRecleans, 'a person asked').toBe(0);
});
