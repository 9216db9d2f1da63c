/** Runs of templates: which steps run, which boots they need, and what follows a failed attempt. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  HostState,
  RerunClass,
  RunKind,
  RunOutcome,
  RunPhase,
  SkipCause,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { agentWordMs } from '../operation/operation.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { done, failed } from '../testing/bench.ts';
import { statusOf } from '../testing/deleting.ts';
import {
  bmcStep,
  bootNow,
  exited,
  passOrder,
  passTime,
  rendered,
  runOf,
  script,
  startOn,
  stepNow,
  taken,
  told,
  workable,
  workflowRun,
  wrote,
} from '../testing/templates.ts';

const boot = ['power.off', 'power.bootRunner', 'runner.await'];

test('a run names its workflow and its template, and keeps what was rendered', () => {
  const host = workable();
  const given = { script: 'ntpd -q', interpreter: '/bin/sh' };
  startOn(host, [script('clock', { arguments: given, timeoutMs: 300_000, retries: 2 })]);
  expect(runOf(host)).toMatchObject({ kind: RunKind.WORKFLOW, workflowRun, templateDigest: 'd1' });
  expect(runOf(host).steps.find(({ title }) => title === 'clock')).toMatchObject({
    name: 'run.script',
    arguments: given,
    retries: 2,
    timeout: { seconds: 300n },
  });
  expect(host.record.change?.cause).toContain(workflowRun);
});

test('the runner is booted before the first step that needs it, and off at the end', () => {
  const host = workable();
  startOn(host, [rendered('sel', bmcStep), script('a'), script('b')]);
  expect(stepNow(host)?.name).toBe(bmcStep);
  host.report(done);
  expect(stepNow(host)?.name).toBe('power.off');
  bootNow(host);
  host.report(wrote(''));
  expect(stepNow(host)?.title, 'no boot between two steps in the runner').toBe('b');
  host.report(wrote(''));
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(taken(host)).toEqual([bmcStep, ...boot, 'run.script', 'run.script', 'power.off']);
  expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
});

test('a list without a step in the runner switches nothing', () => {
  const host = workable(HostState.AVAILABLE);
  startOn(host, [rendered('sel', bmcStep)]);
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(taken(host)).toEqual([bmcStep]);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
});

test.each([
  ['powerOff', ['power.off']],
  ['reboot', boot],
  ['bootDisk', ['power.off', 'power.on']],
] as const)(
  'after %s the next step in the runner gets a fresh boot, if it needs one',
  (step, its) => {
    const host = workable();
    startOn(host, [script('a', { destructive: true }), rendered('p', step), script('b')]);
    bootNow(host);
    host.report(wrote(''));
    for (const name of its) {
      expect(stepNow(host)).toMatchObject({ name, title: 'p' });
      if (name === 'runner.await') host.runnerReady();
      else host.report(done);
    }
    if (step !== 'reboot') bootNow(host);
    expect(stepNow(host)?.title).toBe('b');
    host.report(wrote(''));
    host.report(done);
    expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  },
);

test('after a hand-off the next step in the runner gets a fresh boot', () => {
  const host = workable();
  startOn(host, [script('kexec', { handOff: true }), script('check')]);
  bootNow(host);
  const { kind } = host.operation();
  expect(kind.case === 'runStep' && kind.value.handOff).toBe(true);
  host.report(done);
  bootNow(host);
  expect(stepNow(host)?.title).toBe('check');
  host.report(wrote(''));
  host.report(done);
  expect(told(host)).toEqual(['kexec succeeded', 'check succeeded']);
});

test('the power that the template switched last stays as it left it', () => {
  const host = workable();
  startOn(host, [script('write', { destructive: true }), rendered('go', 'bootDisk')]);
  bootNow(host);
  host.report(wrote(''));
  host.report(done);
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(statusOf(host).poweredOn).toBe(true);
});

test('a host in use runs from its disk again at the end, and also after a failure', () => {
  const host = workable(HostState.PROVISIONED);
  startOn(host, [script('a')]);
  bootNow(host);
  host.report(wrote(''));
  expect(stepNow(host)?.name).toBe('power.off');
  host.report(done);
  expect(stepNow(host)?.name).toBe('power.on');
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  startOn(host, [script('b')]);
  bootNow(host);
  host.report(exited(1));
  expect(runOf(host)).toMatchObject({ kind: RunKind.POWER, phase: RunPhase.RUNNING });
  expect(runOf(host).steps.map(({ name }) => name)).toEqual(['power.off', 'power.on']);
  expect(host.record.finishedRuns, 'the failed run stands nowhere else yet').toHaveLength(1);
  expect(host.record.finishedRuns[0]).toMatchObject({ workflowRun, outcome: RunOutcome.FAILED });
});

test('an available host stays so through what destroys nothing, and leaves it otherwise', () => {
  const host = workable(HostState.AVAILABLE);
  startOn(host, [script('look')]);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  const other = workable(HostState.AVAILABLE);
  startOn(other, [script('write', { destructive: true })]);
  expect(statusOf(other)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  const skipped = workable(HostState.AVAILABLE);
  const never = { destructive: true, condition: 'false', skipCause: SkipCause.NEVER };
  startOn(skipped, [rendered('sel', bmcStep), script('write', never)]);
  expect(statusOf(skipped).state).toBe(HostState.AVAILABLE);
});

test('a condition is judged when the run reaches its step, and nothing booted in vain', () => {
  const host = workable();
  startOn(host, [
    rendered('sel', bmcStep),
    script('a', { condition: 'steps.sel.state == "failed"' }),
    script('b', { condition: 'steps.sel.state == "succeeded"' }),
    script('c', { condition: 'steps.b.exitCode == 0 and steps.b.output == "ready"' }),
    script('d', { condition: 'steps.c.exitCode == 1' }),
  ]);
  host.report(done);
  expect(stepNow(host)?.name).toBe('power.off');
  bootNow(host);
  expect(stepNow(host)?.title).toBe('b');
  host.report(wrote('ready'));
  host.report(wrote(''));
  host.report(done);
  expect(told(host)).toEqual([
    'sel succeeded',
    'a skipped',
    'b succeeded',
    'c succeeded',
    'd skipped',
  ]);
  const { steps } = runOf(host);
  expect(steps.find(({ title }) => title === 'a')?.skippedBecause).toBe(
    'its condition does not hold: steps.sel.state == "failed"',
  );
  expect(steps[1]?.skipCause).toBe(SkipCause.NEXT_SKIPPED);
  expect(taken(host).filter((name) => name === 'power.bootRunner')).toHaveLength(1);
});

test('a failed attempt is tried again after a pause, under an id of its own', () => {
  const host = workable();
  startOn(host, [script('a', { retries: 1 })]);
  bootNow(host);
  const first = host.operation().id;
  host.report(exited(3));
  expect(runOf(host).waiting).toMatchObject({ reason: 'retry' });
  expect(host.record.operation?.sentTo).toBeUndefined();
  const wakeMs = nextWakeMs(host.record, host.nowMs) ?? 0;
  expect(wakeMs).toBeGreaterThan(host.nowMs);
  passTime(host, wakeMs - host.nowMs);
  expect(host.record.operation?.sentTo).toBeDefined();
  expect(host.operation().id).not.toBe(first);
  expect(runOf(host).phase).toBe(RunPhase.RUNNING);
  host.report(exited(4));
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.EXIT_CODE },
  });
  expect(stepNow(host)).toMatchObject({ failures: 1, attempt: 2, exit: { code: 4 } });
});

test.each([
  ['failure', 'continue', 'exitCode'],
  ['time', 'continue', 'deadline'],
] as const)('after a %s the run goes on where its template says so', (_, policy, type) => {
  const host = workable();
  startOn(host, [
    script('a', type === 'deadline' ? { onTimeout: policy } : { onFailure: policy }),
    script('b', { condition: 'steps.a.state == "failed"' }),
  ]);
  bootNow(host);
  host.report(failed(type));
  expect(stepNow(host)?.title).toBe('b');
  host.report(wrote(''));
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(told(host)).toEqual(['a failed', 'b succeeded']);
});

test('an attempt has its template’s time, is stopped then, and the run ends timed out', () => {
  const host = workable();
  startOn(host, [script('a', { timeoutMs: 60_000, onFailure: 'continue' })]);
  bootNow(host);
  const { id, deadline } = host.operation();
  expect(deadline && timestampMs(deadline)).toBe(host.nowMs + 60_000);
  passTime(host, 60_000);
  expect(runOf(host).phase, 'the agent stops it, and may say so').toBe(RunPhase.RUNNING);
  const effects = passTime(host, agentWordMs);
  expect(effects).toContainEqual(expect.objectContaining({ kind: 'cancel', operationId: id }));
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.TIMED_OUT,
    error: { type: FailureType.DEADLINE },
  });
  expect(told(host)).toEqual(['a failed']);
});

test('a step that must not run twice is not tried again when nothing was heard of it', () => {
  const never = { rerunClass: RerunClass.NEVER_TWICE, retries: 3, timeoutMs: 60_000 };
  const silent = workable();
  startOn(silent, [script('a', never)]);
  bootNow(silent);
  passOrder(silent, 60_000);
  expect(runOf(silent).outcome).toBe(RunOutcome.TIMED_OUT);
  const heard = workable();
  startOn(heard, [script('a', never)]);
  bootNow(heard);
  heard.report(failed('deadline'));
  expect(runOf(heard).waiting?.reason).toBe('retry');
});

test('a step that must not run twice waits for a person when it was cut short', () => {
  const host = workable();
  startOn(host, [script('a', { rerunClass: RerunClass.NEVER_TWICE, retries: 3 }), script('b')]);
  bootNow(host);
  const { id } = host.operation();
  host.report(failed('interrupted', 'the agent was started anew'));
  passTime(host, 3_600_000);
  expect(runOf(host).waiting?.reason).toBe('hold');
  expect(host.record.operation).toBeUndefined();
  host.request({ kind: 'resume', reason: 'it did nothing, I looked' });
  expect(stepNow(host)?.title).toBe('a');
  expect(host.operation().id).not.toBe(id);
});

test('a run has the time of its template, and what is under way is told to stop', () => {
  const host = workable();
  startOn(host, [script('a')], 120_000);
  bootNow(host);
  const { id } = host.operation();
  const effects = passTime(host, 120_000);
  expect(runOf(host)).toMatchObject({ outcome: RunOutcome.TIMED_OUT });
  expect(effects).toContainEqual(expect.objectContaining({ kind: 'cancel', operationId: id }));
});

test('a failed step is held for a person, who lets it run again or leaves it out', () => {
  const host = workable();
  startOn(host, [script('a', { onFailure: 'hold' }), script('b')]);
  bootNow(host);
  host.report(exited(1));
  expect(runOf(host).waiting).toMatchObject({
    reason: 'hold',
    message: 'a failed: ended with exit code 1',
  });
  host.apply({ kind: 'tick' });
  expect(runOf(host).waiting?.reason).toBe('hold');
  host.request({ kind: 'resume', reason: 'mended' });
  expect(host.operation().id).toMatch(/\/2$/);
  host.report(exited(1));
  host.request({ kind: 'skip', reason: 'not needed' });
  expect(stepNow(host)?.title).toBe('b');
  host.report(wrote(''));
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(told(host)).toEqual(['a skipped', 'b succeeded']);
});

test('a handler runs only when called; the rest is left out, and the run ends failed', () => {
  const handler = script('tidy', { handler: true });
  const host = workable();
  startOn(host, [script('a', { onFailure: 'tidy' }), script('b'), handler]);
  bootNow(host);
  host.report(exited(7));
  expect(stepNow(host)?.title).toBe('tidy');
  host.report(wrote(''));
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.EXIT_CODE, message: 'ended with exit code 7' },
  });
  expect(told(host)).toEqual(['a failed', 'b skipped', 'tidy succeeded']);
  expect(runOf(host).steps.find(({ title }) => title === 'b')?.skippedBecause).toBe(
    'a failed, and tidy was called',
  );
  const well = workable();
  startOn(well, [script('a', { onFailure: 'tidy' }), handler]);
  bootNow(well);
  well.report(wrote(''));
  well.report(done);
  expect(runOf(well).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(told(well)).toEqual(['a succeeded', 'tidy skipped']);
});

test('a handler gets the boot that it needs; the run ends with the first failure’s words', () => {
  const host = workable();
  const tidy = script('tidy', { handler: true, retries: 1 });
  startOn(host, [rendered('sel', bmcStep, { onFailure: 'tidy' }), tidy]);
  host.report(failed('notApplied', 'the BMC is away'));
  expect(stepNow(host)?.name).toBe('power.off');
  bootNow(host);
  expect(stepNow(host)?.title).toBe('tidy');
  host.report(exited(1));
  passTime(host, 60_000);
  host.report(exited(2));
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { message: 'the BMC is away' },
  });
  expect(told(host)).toEqual(['sel failed', 'tidy failed']);
});

test('a lost boot in a handler boots again, and repeats nothing of what came before', () => {
  const host = workable();
  startOn(host, [
    script('a'),
    script('b', { onFailure: 'tidy' }),
    script('c'),
    script('tidy', { handler: true }),
  ]);
  bootNow(host);
  host.report(wrote(''));
  host.report(exited(1));
  expect(stepNow(host)?.title).toBe('tidy');
  host.report(bootIsOver());
  expect(stepNow(host)?.name).toBe('power.off');
  bootNow(host);
  expect(stepNow(host)?.title).toBe('tidy');
  expect(told(host)).toEqual(['a succeeded', 'b failed', 'c skipped', 'tidy running']);
});

test('a lost boot repeats the steps of its memory, but none that never runs twice', () => {
  const host = workable();
  const once = { rerunClass: RerunClass.NEVER_TWICE };
  startOn(host, [script('file'), script('once', once), script('use')]);
  bootNow(host);
  host.report(wrote(''));
  host.report(wrote(''));
  host.report(bootIsOver());
  bootNow(host);
  expect(stepNow(host)?.title).toBe('file');
  host.report(wrote(''));
  expect(stepNow(host)?.title, 'what never runs twice stays done').toBe('use');
});

test('after a lost boot a file on a disk stays as later steps have left it', () => {
  const host = workable();
  const onDisk = { arguments: { path: '/etc/a', content: 'x', disk: 'S1' }, destructive: true };
  const once = { rerunClass: RerunClass.NEVER_TWICE };
  const inMemory = rendered('note', 'run.file', { arguments: { path: '/n', content: 'x' } });
  const config = rendered('config', 'run.file', onDisk);
  startOn(host, [config, inMemory, script('extend', once), script('use')]);
  bootNow(host);
  for (let step = 0; step < 3; step++) host.report(wrote(''));
  host.report(bootIsOver());
  bootNow(host);
  expect(stepNow(host)?.title, 'what was in memory is lost').toBe('note');
  host.report(wrote(''));
  expect(stepNow(host)?.title).toBe('use');
  expect(runOf(host).steps.find(({ title }) => title === 'config')?.attempt).toBe(1);
});

function bootIsOver(): agent.Report['result'] {
  const reason = agent.ConflictReason.INVALID_STATE;
  const value = create(agent.RetryAfterSchema, {
    reason,
    message: 'the boot is over',
    delay: durationFromMs(0),
  });
  return { case: 'retryAfter', value };
}

test('L9: a hand-off is never sent twice without a person’s request', () => {
  const host = workable();
  startOn(host, [
    script('kexec', { handOff: true, retries: 3, onFailure: 'continue' }),
    script('b'),
  ]);
  bootNow(host);
  const first = host.operation().id;
  host.report(failed('interrupted', 'the agent was started anew'));
  expect(runOf(host).waiting).toMatchObject({ reason: 'hold' });
  expect(host.record.operation).toBeUndefined();
  passTime(host, 3_600_000);
  expect(host.record.operation).toBeUndefined();
  host.request({ kind: 'skip', reason: 'it is over, I saw it' });
  expect(stepNow(host)?.name, 'the runner went away with it').toBe('power.off');
  bootNow(host);
  expect(stepNow(host)?.title).toBe('b');
  expect(host.operation().id).not.toBe(first);
});

test('L9: a hand-off whose journal is lost is held for a person', () => {
  const host = workable();
  startOn(host, [script('kexec', { handOff: true })]);
  bootNow(host);
  const journal = create(agent.JournalSchema, { id: 'j2', generation: 1n });
  const { session } = host.snapshot;
  if (session !== undefined) host.snapshot = { ...host.snapshot, session: { ...session, journal } };
  const effects = host.apply({ kind: 'hello', journal, listed: [] });
  expect(effects.filter(({ kind }) => kind === 'send')).toEqual([]);
  expect(runOf(host).waiting?.reason).toBe('hold');
});

test('the completion of a hand-off counts, also when the machine has gone before', () => {
  const host = workable();
  startOn(host, [script('kexec', { handOff: true })]);
  bootNow(host);
  const observations = create(agent.ObservationsSchema, { poweredOn: false });
  const value = create(agent.HostUpdatedSchema, { observations });
  host.report({ case: 'hostUpdated', value }, '');
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
});

test('a power step of several of the engine’s is tried again as a whole', () => {
  const host = workable();
  startOn(host, [rendered('again', 'reboot', { retries: 1, timeoutMs: 60_000 }), script('b')]);
  host.report(done);
  host.report(done);
  passTime(host, 60_000);
  expect(stepNow(host)).toMatchObject({ name: 'power.off', title: 'again', attempt: 2 });
  bootNow(host);
  expect(stepNow(host)?.title).toBe('b');
});

test('a power step that fails for good leaves its rest out', () => {
  const host = workable();
  startOn(host, [rendered('again', 'reboot', { onFailure: 'continue' }), rendered('sel', bmcStep)]);
  host.report(failed('notApplied'));
  expect(stepNow(host)?.title).toBe('sel');
  expect(told(host)).toEqual(['again failed', 'again skipped', 'again skipped', 'sel running']);
});

test('a wrong machine ends the run whatever the template says', () => {
  const host = workable();
  startOn(host, [script('a', { onFailure: 'continue', retries: 5 })]);
  bootNow(host);
  host.report(failed('identityMismatch'));
  expect(runOf(host)).toMatchObject({ outcome: RunOutcome.FAILED });
});

test('a hold says its reason, and a pause its time', () => {
  const host = workable();
  const lamp = rendered('look', 'hold', { arguments: { reason: 'see that the lamp is green' } });
  startOn(host, [lamp, rendered('settle', 'wait', { arguments: { seconds: '30' } })]);
  expect(runOf(host).waiting?.message).toBe('see that the lamp is green');
  host.request({ kind: 'resume', reason: '' });
  expect(runOf(host).waiting?.reason).toBe('wait');
  passTime(host, 30_000);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
});

test('a hold with a time of its own ends by it, with no agent there', () => {
  const host = workable();
  startOn(host, [rendered('look', 'hold', { timeoutMs: 60_000, onTimeout: 'continue' })]);
  host.snapshot = { ...host.snapshot, session: undefined };
  passTime(host, 60_000);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(told(host)).toEqual(['look failed']);
});
