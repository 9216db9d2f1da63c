/** Lists of steps with control steps between them, and a person's actions on a waiting run. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  FleetSpecSchema,
  HostGoal,
  HostState,
  RerunClass,
  RunOutcome,
  RunPhase,
  StepState,
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
  driveToInspect,
  erased,
  failed,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { planOf } from './known-steps.ts';

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
const stepAt = (host: Bench) => runOf(host).steps[runOf(host).currentStep];
const namesOf = (host: Bench) => runOf(host).steps.map(({ name }) => name);

const described = (
  name: string,
  more: Partial<Pick<agent.StepDescription, 'rerunClass' | 'rebootAfter' | 'abortable'>> = {},
) =>
  create(agent.StepDescriptionSchema, {
    name,
    rerunClass: RerunClass.SAFE,
    destructive: false,
    abortable: true,
    ...more,
  });

const clearLog = described('management.clear_event_log');
const runnerSteps = [
  described('deploy.erase_devices', { rerunClass: RerunClass.CHECK_FIRST }),
  described('vendor.tune'),
  described('firmware.flash', { rerunClass: RerunClass.NEVER_TWICE, abortable: false }),
  described('bios.set', { rebootAfter: true }),
];

/** A manageable host whose agent and runner have announced their steps. */
function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.snapshot = {
    ...host.snapshot,
    agentSteps: [clearLog],
    facts: { ...host.snapshot.facts, runnerSteps },
  };
  return host;
}

type Listed = string | readonly [string, Record<string, string>];

function listed(...steps: readonly Listed[]) {
  const each = (step: Listed) =>
    typeof step === 'string'
      ? { step, arguments: {} }
      : { step: step[0], arguments: { ...step[1] } };
  return { kind: 'clean', steps: steps.map(each) } as const;
}

function violationsOf(host: Bench, ...steps: readonly Listed[]) {
  const before = host.record;
  const request = listed(...steps);
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
  expect(host.record).toBe(before);
  return outcome.kind === 'refused' ? (outcome.refusal.fieldViolations ?? []) : [];
}

const erasedWell = (host: Bench): agent.Report['result'] => ({
  case: 'complete',
  value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
});

/** Starts a list and drives it to its first own step. */
function started(host: Bench, ...steps: readonly Listed[]): Bench {
  host.request(listed(...steps));
  driveToInspect(host);
  host.report(inspected());
  return host;
}

const ordered = (host: Bench) => {
  const { kind } = host.operation();
  return kind.case === 'runStep' ? kind.value : undefined;
};

const resume = { kind: 'resume', reason: 'looked at it' } as const;
const skip = { kind: 'skip', reason: 'not needed' } as const;

test('a hold waits for a person, says so, and goes on when resumed', () => {
  const host = started(manageable(), 'hold', 'vendor.tune');
  expect(runOf(host)).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'hold' } });
  expect(statusOf(host).display).toBe('');
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.headline).toContain('held for a person');
  expect(told.blocker).toBe('a person');
  expect(told.unblock[0]).toBe('go on: rackwright host resume h1');
  host.nowMs += 3_600_000;
  host.apply({ kind: 'tick' });
  expect(stepAt(host)?.name).toBe('hold');
  const deadline = runOf(host).deadline?.seconds ?? 0n;
  host.request(resume);
  expect(ordered(host)?.step).toBe('vendor.tune');
  expect(host.record.change).toMatchObject({ actor: 'user:test' });
  expect(host.record.change?.cause).toContain('hold resumed: looked at it');
  expect(runOf(host).deadline?.seconds, 'the time held is not the run’s').toBe(deadline + 3_600n);
});

test('a hold needs no agent, and is left out by a skip that says who and why', () => {
  const host = started(manageable(), 'hold', 'vendor.tune');
  const { session } = host.snapshot;
  host.snapshot = { ...host.snapshot, session: undefined };
  host.apply({ kind: 'tick' });
  expect(runOf(host).waiting?.reason).toBe('hold');
  host.request(skip);
  expect(runOf(host).waiting?.reason).toBe('agent');
  const hold = runOf(host).steps.find(({ name }) => name === 'hold');
  expect(hold).toMatchObject({
    state: StepState.SKIPPED,
    skip: { by: 'user:test', reason: 'not needed' },
  });
  host.snapshot = { ...host.snapshot, session };
  host.apply({ kind: 'tick' });
  expect(ordered(host)?.step).toBe('vendor.tune');
});

test('a pause is kept by its stored time, wakes the host, and can be skipped', () => {
  const host = started(manageable(), ['wait', { seconds: '90' }], 'vendor.tune');
  expect(nextWakeMs(host.record, host.nowMs)).toBe(host.nowMs + 90_000);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.nextAttemptTime).toBeDefined();
  expect(told.headline).toContain('pausing');
  const other = manageable();
  other.record = host.record;
  host.nowMs += 89_000;
  host.apply({ kind: 'tick' });
  expect(stepAt(host)?.name).toBe('wait');
  host.nowMs += 1_000;
  host.apply({ kind: 'tick' });
  expect(ordered(host)?.step).toBe('vendor.tune');
  const outcome = other.try({ kind: 'request', request: resume, by: { actor: userActor('test') } });
  expect(outcome.kind, 'a resume repeats nothing').toBe('kept');
  other.request(skip);
  expect(ordered(other)?.step).toBe('vendor.tune');
});

test('an abort at a hold and at a pause ends the run at once, and is accepted once more', () => {
  for (const control of ['hold', ['wait', { seconds: '60' }]] as const) {
    const host = started(manageable(), control, 'vendor.tune');
    host.request({ kind: 'abort', reason: 'changed my mind' });
    expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
    expect(runOf(host).error?.message).toContain('changed my mind');
    expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  }
});

test('a step that never runs twice is held when cut short: resume runs it, skip does not', () => {
  const cut = () => {
    const host = started(manageable(), 'firmware.flash', 'vendor.tune');
    const { id } = host.operation();
    host.report(failed('interrupted', 'the runner was started anew'));
    expect(runOf(host)).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'hold' } });
    expect(host.record.operation).toBeUndefined();
    const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
    expect(told.unblock[0]).toBe('let it run again: rackwright host resume h1');
    host.nowMs += 48 * 3_600_000;
    host.apply({ kind: 'tick' });
    expect(runOf(host).phase, 'no deadline runs while a person is asked').toBe(RunPhase.WAITING);
    return { host, id };
  };
  const again = cut();
  again.host.request(resume);
  expect(ordered(again.host)?.step).toBe('firmware.flash');
  expect(again.host.operation().id).not.toBe(again.id);
  const without = cut().host;
  without.request(skip);
  expect(ordered(without)?.step).toBe('vendor.tune');
});

test('a run that is not held refuses resume and skip, naming where it is', () => {
  const host = started(manageable(), 'vendor.tune');
  for (const request of [resume, skip]) {
    const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
    expect(outcome.kind).toBe('refused');
    if (outcome.kind === 'refused') expect(outcome.refusal.message).toContain('at vendor.tune');
  }
});

test('an abort waits for a step that must not be stopped, and then ends the run', () => {
  const host = started(manageable(), 'firmware.flash', 'vendor.tune');
  const effects = host.request({ kind: 'abort', reason: 'too late?' });
  expect(effects.filter(({ kind }) => kind === 'cancel')).toEqual([]);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.causes[0]?.text).toContain('cannot be stopped');
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
});

test('a list that needs no runner boots none, and orders the agent by the BMC', () => {
  const host = manageable();
  host.request(listed('management.clear_event_log', 'hold'));
  expect(namesOf(host)).toEqual(['management.clear_event_log', 'hold']);
  expect(ordered(host)).toMatchObject({
    step: 'management.clear_event_log',
    bootOperationId: '',
    destructive: false,
    bmc: { address: '10.0.0.1', credential: 'credentials/c1' },
    expectedIdentity: { serial: 'SN-1' },
  });
  expect(stepAt(host)?.outOfBand).toBe(true);
  host.report(failed('interrupted'));
  expect(host.operation().id, 'safe: it runs again').toMatch(/\/2$/);
  host.report(done);
  host.request(resume);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
});

test('a step that asks for it is followed by a boot of its own; what follows runs there', () => {
  const host = started(manageable(), 'bios.set', 'deploy.erase_devices');
  expect(namesOf(host)).toEqual([
    'power.off',
    'power.bootRunner',
    'runner.await',
    'runner.inspect',
    'bios.set',
    'power.off',
    'power.bootRunner',
    'runner.await',
    'runner.inspect',
    'deploy.erase_devices',
    'runner.inspectAgain',
    'power.off',
  ]);
  expect(ordered(host)?.bootOperationId).toBe('u1/2/1/1');
  host.report(done);
  driveToInspect(host);
  host.report(inspected());
  expect(ordered(host)).toMatchObject({
    step: 'deploy.erase_devices',
    bootOperationId: 'u1/2/6/1',
  });
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(statusOf(host)).toMatchObject({ dirty: false });
});

test('a runner of an earlier boot counts for no later one', () => {
  const host = started(manageable(), 'bios.set', 'vendor.tune');
  const old = host.record.runner;
  if (old === undefined) throw new Error('no runner');
  host.report(done);
  host.report(done);
  host.report(done);
  expect(stepAt(host)?.name).toBe('runner.await');
  const value = create(agent.HostUpdatedSchema, { observations: { runnerReady: old } });
  const report = create(agent.ReportSchema, {
    hostUid: 'u1',
    result: { case: 'hostUpdated', value },
  });
  host.apply({ kind: 'report', report });
  expect(stepAt(host)?.name).toBe('runner.await');
});

test('a boot that is lost later repeats the erasure, and nothing that must not run twice', () => {
  const host = started(
    manageable(),
    'firmware.flash',
    'deploy.erase_devices',
    'hold',
    'reboot',
    'vendor.tune',
  );
  host.report(done);
  host.report(erasedWell(host));
  host.request(resume);
  host.report(inspected());
  driveToInspectless(host);
  expect(ordered(host)?.step).toBe('vendor.tune');
  const value = create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.INVALID_STATE,
    message: 'the boot is over',
    delay: durationFromMs(0),
  });
  host.report({ case: 'retryAfter', value });
  expect(runOf(host).currentStep).toBe(0);
  expect(host.record.certified).toEqual([]);
  driveToInspect(host);
  host.report(inspected());
  expect(ordered(host)?.step, 'firmware is not flashed twice').toBe('deploy.erase_devices');
  host.report(erasedWell(host));
  host.report(inspected());
  expect(stepAt(host)?.name, 'nobody is asked twice').toBe('power.off');
});

/** Another runner of the same boot reports its presence and its inventory. */
function inspectedBy(host: Bench, runnerSession: string): void {
  const bootOperationId = bootOfRunner(runOf(host));
  const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession, bootId: 'b2' };
  const observations = create(agent.ObservationsSchema, { runnerReady });
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
  const found = inspected();
  const inventory = found.case === 'complete' ? found.value.observations?.inventory : undefined;
  if (inventory !== undefined) Object.assign(inventory, { runnerSession });
  host.report(found);
}

test('a clean fails when another runner looks at its disks than erased them', () => {
  const host = started(manageable(), 'deploy.erase_devices');
  host.report(erasedWell(host));
  inspectedBy(host, 's2');
  expect(stepAt(host)?.name).toBe('runner.inspectAgain');
  for (let more = 0; more < 5 && runOf(host).phase !== RunPhase.ENDED; more++) {
    inspectedBy(host, 's2');
  }
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.INTERRUPTED },
  });
  expect(statusOf(host).dirty).toBe(true);
});

test('a clean that reboots after erasing looks before, and once more for new disks', () => {
  const host = started(manageable(), 'deploy.erase_devices', 'reboot', 'vendor.tune');
  host.report(erasedWell(host));
  expect(stepAt(host)?.name).toBe('runner.inspectAgain');
  host.report(inspected());
  driveToInspectless(host);
  host.report(done);
  inspectedBy(host, 's2');
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(statusOf(host).dirty).toBe(false);
});

/** A reboot without an inspection after it. */
function driveToInspectless(host: Bench): void {
  host.report(done);
  host.report(done);
  host.runnerReady();
}

test.each<[string, readonly Listed[], string, string]>([
  ['an unknown step', ['deploy.polish'], 'steps[0].step', 'control steps: hold, wait'],
  [
    'a wrong argument',
    ['hold', ['wait', { seconds: 'abc' }]],
    'steps[1].arguments.seconds',
    '"abc" is not',
  ],
  [
    'a step of the runner while it is off',
    ['powerOff', 'vendor.tune'],
    'steps[1].step',
    'put powerOn',
  ],
  ['powerOn while it is up', ['powerOn', 'vendor.tune'], 'steps[0].step', 'use reboot'],
  ['powerOff twice', ['powerOff', 'hold', 'powerOff', 'reboot'], 'steps[2].step', 'already'],
])('%s is refused at the request, naming the field', (_, steps, field, text) => {
  const violations = violationsOf(manageable(), ...steps);
  expect(violations.map((each) => each.field)).toEqual([field]);
  expect(violations[0]?.description).toContain(text);
});

test('the listed steps are those that run, by the priorities of host, pool and fleet', () => {
  const host = manageable();
  const known = host.record.host;
  if (known === undefined) throw new Error('no host');
  known.labels = { pool: 'gpu' };
  host.snapshot = {
    ...host.snapshot,
    fleet: create(FleetSpecSchema, {
      priorityOverrides: { 'vendor.tune': 30, 'deploy.erase_devices': 20 },
      pools: [{ pool: 'gpu', priorityOverrides: { 'management.clear_event_log': 25 } }],
    }),
  };
  const { enabled } = planOf(known, host.snapshot);
  expect(enabled.map(({ name, priorityFrom }) => [name, priorityFrom])).toEqual([
    ['vendor.tune', 'fleet'],
    ['management.clear_event_log', 'pool'],
    ['deploy.erase_devices', 'fleet'],
  ]);
  host.request({ kind: 'clean', steps: [] });
  expect(namesOf(host).slice(4, -2)).toEqual(enabled.map(({ name }) => name));
});

test('powerOff ends the runner, powerOn boots another; disks are looked at while one is up', () => {
  const host = manageable();
  host.request(
    listed('deploy.erase_devices', 'powerOff', 'hold', 'powerOn', 'vendor.tune', 'powerOff'),
  );
  expect(namesOf(host).slice(4)).toEqual([
    'deploy.erase_devices',
    'runner.inspectAgain',
    'power.off',
    'hold',
    'power.bootRunner',
    'runner.await',
    'vendor.tune',
    'runner.inspectAgain',
    'power.off',
  ]);
});
