/** The site's own programs in cleans: their positions, what follows them, what they prove. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  FleetSpecSchema,
  HostGoal,
  HostState,
  type OwnCleanStep,
  RunOutcome,
  RunPhase,
  StepState,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { defaultTiming } from '../pass/timing.ts';
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
import { statusOf } from '../testing/deleting.ts';
import {
  bootNow,
  exited,
  passOrder,
  passTime,
  runOf,
  stepNow,
  told,
  wrote,
} from '../testing/templates.ts';

const image = `registry.example.org/tools/check@sha256:${'a'.repeat(64)}`;
const templates = { imageRepositories: ['registry.example.org/tools/*'] };
type Own = Partial<Omit<OwnCleanStep, '$typeName' | '$unknown'>>;

/** A verified host of a fleet with these programs; a clean reaches its goal. */
function hostWith(...own: readonly Own[]): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const ownCleanSteps = own.map((each) => ({ name: 'check', image, ...each }));
  host.snapshot = {
    ...host.snapshot,
    fleet: create(FleetSpecSchema, { templates, ownCleanSteps }),
  };
  return host;
}

/** Up to the first program. */
function cleaning(...own: readonly Own[]): Bench {
  const host = hostWith(...own);
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  host.report(inspected());
  return host;
}

const called = (host: Bench) => {
  const step = stepNow(host);
  return step?.title || step?.name;
};

function finish(host: Bench): void {
  host.report({
    case: 'complete',
    value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
  });
  host.report(inspected());
  host.report(done);
}

test('a program runs as a command, and the runner boots again before disks are erased', () => {
  const host = cleaning({ arguments: ['--all'], timeout: durationFromMs(90_000) });
  expect(stepNow(host)).toMatchObject({
    ...{ name: 'run.command', title: 'own.check', destructive: true },
    timeout: { seconds: 90n },
  });
  const { kind } = host.operation();
  expect(kind.case === 'runStep' && kind.value).toMatchObject({
    ...{ step: 'run.command', destructive: true, image: { reference: image }, devices: [] },
    arguments: { image, arguments: '["--all"]' },
  });
  host.report(wrote('all is well\n'));
  expect(called(host)).toBe('power.off');
  bootNow(host);
  host.report(inspected());
  expect(called(host)).toBe('deploy.erase_devices');
  finish(host);
  expect(runOf(host)).toMatchObject({ outcome: RunOutcome.SUCCEEDED, phase: RunPhase.ENDED });
  expect(statusOf(host)).toMatchObject({ dirty: false, lastCleaned: {} });
  const [kept] = runOf(host).steps.filter(({ title }) => title !== '');
  expect(kept?.exit).toMatchObject({ code: 0, lastOutput: 'all is well\n' });
});

test('several programs share a boot; the runner boots once behind the last', () => {
  const host = cleaning({ name: 'b', priority: 90 }, { name: 'a', priority: 200 });
  expect(called(host)).toBe('own.a');
  host.report(wrote(''));
  expect(called(host)).toBe('own.b');
  host.report(wrote(''));
  expect(called(host)).toBe('power.off');
  const boots = runOf(host).steps.filter(({ name }) => name === 'power.bootRunner');
  expect(boots).toHaveLength(2);
});

test('evidence that a program reports certifies no disk', () => {
  const host = cleaning({});
  const effects = host.report({
    case: 'complete',
    value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
  });
  expect(effects.map(({ kind }) => kind)).not.toContain('certify');
  expect(host.record.certified).toEqual([]);
  expect(runOf(host).phase).not.toBe(RunPhase.ENDED);
});

test('a program that fails ends the clean, unless it says otherwise', () => {
  const plain = cleaning({});
  plain.report(exited(3, 'a fan is missing\n'));
  expect(runOf(plain)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { message: expect.stringContaining('3') },
  });
  expect(statusOf(plain)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });

  const lenient = cleaning({ onFailure: 'continue' });
  lenient.report(exited(3));
  expect(told(lenient)).toEqual(['own.check failed']);
  expect(called(lenient)).toBe('power.off');

  const held = cleaning({ onFailure: 'hold' });
  held.report(exited(3));
  expect(runOf(held).waiting).toMatchObject({ reason: 'hold' });
  held.request({ kind: 'skip', reason: 'the fan comes tomorrow' });
  expect(called(held)).toBe('power.off');
});

test('a program is tried again as often as it says, after a failure', () => {
  const host = cleaning({ retries: 1 });
  host.report(exited(1));
  expect(stepNow(host)).toMatchObject({ title: 'own.check', attempt: 2, failures: 1 });
  host.report(exited(1));
  expect(runOf(host).outcome).toBe(RunOutcome.FAILED);
});

test('a program that takes too long is followed by what it says of that', () => {
  const timeout = durationFromMs(60_000);
  const plain = cleaning({ timeout });
  passOrder(plain, 61_000);
  expect(runOf(plain)).toMatchObject({ outcome: RunOutcome.TIMED_OUT });
  const lenient = cleaning({ timeout, onTimeout: 'continue' });
  passOrder(lenient, 61_000);
  expect(told(lenient)).toEqual(['own.check failed']);
  expect(called(lenient)).toBe('power.off');
});

test('an interrupted program is held for a person, or runs again where it may', () => {
  const once = cleaning({});
  once.report(failed('interrupted'));
  expect(runOf(once).waiting).toMatchObject({ reason: 'hold' });
  const again = cleaning({ idempotent: true });
  again.report(failed('interrupted'));
  expect(stepNow(again)).toMatchObject({
    title: 'own.check',
    attempt: 2,
    state: StepState.RUNNING,
  });
});

/** The runner is away for longer than a boot takes. */
function loseRunner(host: Bench): void {
  const value = create(agent.TransientErrorSchema, { cause: TransientCause.RUNNER_AWAY });
  const away = { case: 'transientError', value } as const;
  host.report(away);
  passTime(host, defaultTiming.bootTimeoutMs + 1);
  host.report(away);
}

function bootToProgram(host: Bench): void {
  expect(called(host)).toBe('power.off');
  bootNow(host);
  host.report(inspected());
  expect(stepNow(host)).toMatchObject({ title: 'own.check', failures: 1 });
}

test('a program whose runner is lost is tried again behind another boot', () => {
  const host = cleaning({ retries: 1 });
  const before = bootOfRunner(runOf(host));
  loseRunner(host);
  bootToProgram(host);
  expect(bootOfRunner(runOf(host))).not.toBe(before);
  loseRunner(host);
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.RUNNER_LOST },
  });
});

test('a program that a person lets run again boots again, unless its runner is back', () => {
  const gone = cleaning({ onFailure: 'hold' });
  loseRunner(gone);
  expect(runOf(gone).waiting).toMatchObject({ reason: 'hold' });
  gone.request({ kind: 'resume', reason: 'the link is mended' });
  bootToProgram(gone);

  const back = cleaning({ onFailure: 'hold' });
  loseRunner(back);
  back.runnerReady();
  back.request({ kind: 'resume', reason: '' });
  expect(called(back)).toBe('own.check');
  back.report(wrote(''));
  expect(called(back)).toBe('power.off');
});

test('a clean that failed at a program goes on with that program', () => {
  const host = cleaning({ retries: 1 });
  for (const _ of [1, 2]) host.report(exited(1));
  host.request({ kind: 'resume', reason: 'a cable was loose' });
  expect(stepNow(host)).toMatchObject({ title: 'own.check', attempt: 1, failures: 0 });
  host.report(wrote(''));
  bootNow(host);
  host.report(inspected());
  finish(host);
  expect(statusOf(host)).toMatchObject({ dirty: false, lastCleaned: {} });
});

test('a program whose repository is let in no more is not run', () => {
  const host = hostWith({});
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  const ownCleanSteps = host.snapshot.fleet?.ownCleanSteps ?? [];
  host.snapshot = { ...host.snapshot, fleet: create(FleetSpecSchema, { ownCleanSteps }) };
  host.report(inspected());
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { message: expect.stringContaining('allows no command') },
  });
});

test('a boot that is lost while disks are erased repeats no program', () => {
  const host = cleaning({ idempotent: true });
  host.report(wrote(''));
  bootNow(host);
  host.report(inspected());
  expect(called(host)).toBe('deploy.erase_devices');
  const { session, ...context } = host.snapshot;
  const journal = create(agent.JournalSchema, { id: 'j2', generation: 1n });
  host.snapshot = { ...context, session: session && { ...session, journal } };
  host.apply({ kind: 'hello', journal, listed: [], grants: [] });
  expect(called(host)).toBe('power.off');
  bootNow(host);
  host.report(inspected());
  expect(called(host)).toBe('deploy.erase_devices');
  expect(told(host)).toEqual(['own.check succeeded']);
});

test('a runner that runs no commands ends the clean before anything has run', () => {
  const host = hostWith({});
  host.request({ kind: 'clean', steps: [] });
  host.report(done);
  host.report(done);
  const ready = { hostUid: 'u1', bootOperationId: bootOfRunner(runOf(host)), bootId: 'b1' };
  const steps = [create(agent.StepDescriptionSchema, { name: 'deploy.erase_devices' })];
  const runnerReady = { ...ready, runnerSession: 's1', runnerVersion: '1', steps };
  const value = create(agent.HostUpdatedSchema, { observations: { runnerReady } });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { message: expect.stringContaining('has no step run.command') },
  });
});

test('a registry that stays away is waited for, then the program has failed', () => {
  const host = cleaning({ onFailure: 'continue' });
  const away = () => {
    const cause = TransientCause.REGISTRY;
    const value = create(agent.TransientErrorSchema, { cause, message: 'no answer' });
    host.report({ case: 'transientError', value });
  };
  away();
  for (let minute = 0; minute < 29; minute += 1) {
    passTime(host, 60_000);
    away();
    expect(told(host)).toEqual(['own.check running']);
  }
  passTime(host, 120_000);
  away();
  expect(told(host)).toEqual(['own.check failed']);
  expect(called(host)).toBe('power.off');
});

test('a list may name a program before it erases, and nowhere else', () => {
  const host = hostWith({});
  const steps = (...names: string[]) => names.map((step) => ({ step, arguments: {} }));
  const refusalOf = (kind: 'clean' | 'service', ...names: string[]) => {
    const request = { kind, steps: steps(...names) };
    const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
    return outcome.kind === 'refused' ? outcome.refusal.fieldViolations?.[0] : undefined;
  };
  expect(refusalOf('clean', 'deploy.erase_devices', 'own.check')).toMatchObject({
    field: 'steps[1].step',
    description: expect.stringContaining('could write to what steps[0] has erased'),
  });
  expect(refusalOf('service', 'own.check')).toMatchObject({ field: 'steps[0].step' });
  expect(refusalOf('clean', 'own.other')).toMatchObject({ field: 'steps[0].step' });
  host.request({ kind: 'clean', steps: steps('own.check', 'hold', 'deploy.erase_devices') });
  driveToInspect(host);
  host.report(inspected());
  expect(called(host)).toBe('own.check');
  host.report(wrote(''));
  expect(called(host)).toBe('power.off');
});

test('a list that boots between a program and the erasure boots no second time', () => {
  const host = hostWith({});
  const steps = ['own.check', 'reboot', 'deploy.erase_devices'];
  host.request({ kind: 'clean', steps: steps.map((step) => ({ step, arguments: {} })) });
  const boots = runOf(host).steps.filter(({ name }) => name === 'power.bootRunner');
  expect(boots).toHaveLength(2);
});

test('only the fleet offers a step under the name of a program', () => {
  const host = cleaning({});
  const stranger = create(agent.StepDescriptionSchema, { name: 'own.check', priority: 500 });
  const { snapshot } = host;
  host.snapshot = { ...snapshot, agentSteps: [stranger], facts: { ...snapshot.facts } };
  host.request({ kind: 'abort', reason: 'again' });
  host.report(failed('cancelled'));
  host.request({ kind: 'clean', steps: [] });
  expect(runOf(host).steps.filter(({ name }) => name === 'own.check')).toEqual([]);
});
