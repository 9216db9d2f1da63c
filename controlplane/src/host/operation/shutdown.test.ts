/** How a running system is switched off: the deadline in the record, and the result. */
import { clone, create } from '@bufbuild/protobuf';
import { durationMs, type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asWorkflowUid,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  type Shutdown,
  ShutdownMode,
  ShutdownOutcome,
  ShutdownPolicySchema,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { explainEndedRun } from '../explain/run.ts';
import { type Bench, done, failed, startMs, statusOf } from '../testing/bench.ts';
import { agentLeaves, force, manageable, pass, provisioned, runKind } from '../testing/deleting.ts';
import { rendered, workflowRun } from '../testing/templates.ts';

const { STOPPED, FORCED, FORCED_UNSUPPORTED } = ShutdownOutcome;
const graceful = create(ShutdownPolicySchema, { mode: ShutdownMode.GRACEFUL });

/** The order in the slot: the seconds from the start until the system is forced off. */
function orderedSeconds(host: Bench): number | undefined {
  const { kind } = host.operation();
  return kind.case === 'setPower' ? secondsOf(kind.value.shutdownDeadline) : undefined;
}

function secondsOf(time: Timestamp | undefined): number | undefined {
  return time === undefined ? undefined : (timestampMs(time) - startMs) / 1_000;
}

function off(shutdown?: ShutdownOutcome): agent.Report['result'] {
  const observations = { poweredOn: false, ...(shutdown === undefined ? {} : { shutdown }) };
  return { case: 'complete', value: create(agent.CompleteSchema, { observations }) };
}

/** Of the first step of the last run. */
function shutdownIn(host: Bench): Shutdown | undefined {
  return statusOf(host).run?.steps[0]?.shutdown;
}

const interrupted = failed('interrupted', 'the agent was restarted');

test('a provisioned host is asked to shut down, and its step says what came of it', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  expect(orderedSeconds(host)).toBe(300);
  expect(statusOf(host).run?.shutdown).toMatchObject({ mode: ShutdownMode.GRACEFUL });
  expect(secondsOf(host.operation().deadline)).toBe(600);
  pass(host, 12_000);
  host.report(off(STOPPED));
  expect(statusOf(host)).toMatchObject({
    poweredOn: false,
    run: { outcome: RunOutcome.SUCCEEDED },
  });
  const { outcome, duration } = shutdownIn(host) ?? {};
  expect([outcome, duration && durationMs(duration)]).toEqual([STOPPED, 12_000]);
  expect(host.record.change?.cause).toContain('shut down by itself, after 12 seconds');
});

test.each([
  ['manageable', undefined, {}, undefined],
  ['manageable', graceful, {}, 300],
  ['manageable', undefined, { mode: ShutdownMode.GRACEFUL, timeoutSeconds: 60 }, 60],
  ['provisioned', undefined, { mode: ShutdownMode.FORCE }, undefined],
  ['provisioned', undefined, { timeoutSeconds: 20 }, 20],
  ['provisioned', { timeoutSeconds: 40 }, { timeoutSeconds: 20 }, 40],
  ['provisioned', graceful, { mode: ShutdownMode.FORCE, timeoutSeconds: 20 }, 20],
  ['provisioned', { mode: ShutdownMode.FORCE }, { timeoutSeconds: 20 }, undefined],
] as const)(
  'a %s host that is asked for %j over %j gets the deadline that follows',
  (state, asked, shutdown, seconds) => {
    const host = state === 'provisioned' ? provisioned({ shutdown }) : manageable();
    const { spec } = host.record.host ?? {};
    if (spec !== undefined) spec.shutdown = create(ShutdownPolicySchema, shutdown);
    const wanted = asked === undefined ? {} : { shutdown: create(ShutdownPolicySchema, asked) };
    host.request({ kind: 'powerReset', bootOldDiskReason: 'a look', ...wanted });
    expect(orderedSeconds(host)).toBe(seconds);
  },
);

test('an external host is asked as well, and a release asks before it takes the power', () => {
  const external = provisioned();
  statusOf(external).state = HostState.EXTERNAL;
  external.request({ kind: 'powerOff' });
  expect(orderedSeconds(external)).toBe(300);
  const released = provisioned();
  released.request({ kind: 'release', reason: 'back' });
  expect(orderedSeconds(released)).toBe(300);
});

test('whatever cuts an attempt short, the deadline stays where it was', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  pass(host, 100_000);
  host.report(interrupted);
  expect(host.operation().id).toMatch(/\/2$/);
  expect(orderedSeconds(host)).toBe(300);
  expect(secondsOf(host.operation().deadline)).toBe(600);
  pass(host, 300_000);
  host.report(interrupted);
  // It is over by now: the agent forces at once.
  expect(orderedSeconds(host)).toBe(300);
  expect(secondsOf(host.operation().deadline)).toBe(700);
  host.report(off(FORCED));
  expect(shutdownIn(host)?.outcome).toBe(FORCED);
});

test('a clock that is set back makes no wait longer than its policy', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  host.nowMs -= 3_600_000;
  host.report(interrupted);
  expect(orderedSeconds(host)).toBe(300 - 3_600);
});

test('our own runner is not asked to shut down; a system that replaced it is', () => {
  const host = provisioned();
  host.request({ kind: 'rescue', reason: 'a look' });
  host.report(off(STOPPED));
  host.report(done);
  host.runnerReady();
  expect(host.record.inRunner).toBe(true);
  const before = clone(store.HostRecordSchema, host.record);
  host.request({ kind: 'powerOff' });
  expect(orderedSeconds(host)).toBeUndefined();
  host.report(off());
  expect(shutdownIn(host)).toBeUndefined();
  host.record = before;
  const seen = (poweredOn: boolean) => {
    const value = create(agent.HostUpdatedSchema, { observations: { poweredOn } });
    const result = { case: 'hostUpdated' as const, value };
    const report = create(agent.ReportSchema, { hostUid: 'u1', result });
    host.apply({ kind: 'report', report });
  };
  seen(false);
  seen(true);
  host.request({ kind: 'powerOff' });
  expect(orderedSeconds(host)).toBe(300);
});

test('an agent without graceful shutdown forces the host off, and the run says so', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  host.report(done);
  expect(shutdownIn(host)?.outcome).toBe(FORCED_UNSUPPORTED);
  const run = statusOf(host).run;
  const told = run === undefined ? [] : explainEndedRun(host.record, run).causes;
  expect(told.map(({ text }) => text).join()).toMatch(/forced off at once.* no soft off/);
});

test('an outcome of a later version counts as none that we know', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  host.report(off(99 as ShutdownOutcome));
  expect(shutdownIn(host)).toMatchObject({ outcome: ShutdownOutcome.UNSPECIFIED });
  expect(shutdownIn(host)?.duration).toBeDefined();
});

test('explain says for what it waits, until when, and what can be done', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.causes.map(({ text }) => text)).toEqual([
    'waits for the system to shut down until 2026-01-01T00:05:00Z; then it is forced off',
  ]);
  expect(secondsOf(told.deadline)).toBe(300);
  expect(told.unblock.join('; ')).toContain('rackwright host power skip-wait h1');
  agentLeaves(host);
  pass(host, 1_000);
  const away = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(away.causes.map(({ text }) => text).join()).toContain('waits for the system to shut down');
});

const cancelled = failed('cancelled', 'stopped');

test('a person ends the wait: the attempt stops, and the next attempt forces the host off', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  pass(host, 60_000);
  const effects = host.request({ kind: 'skipWait' });
  expect(effects.some(({ kind }) => kind === 'cancel')).toBe(true);
  expect(secondsOf(shutdownIn(host)?.deadline)).toBe(60);
  pass(host, 1_000);
  host.report(cancelled);
  expect(host.operation().id).toMatch(/\/2$/);
  expect(orderedSeconds(host)).toBe(60);
  host.report(off(FORCED));
  expect(statusOf(host).run).toMatchObject({ outcome: RunOutcome.SUCCEEDED });
});

test.each(['not waiting', 'ended already', 'aborted'])('nothing ends a wait that is %s', (what) => {
  const host = what === 'not waiting' ? manageable() : provisioned();
  host.request({ kind: 'powerOff' });
  if (what === 'ended already') host.request({ kind: 'skipWait' });
  if (what === 'aborted') host.request({ kind: 'abort', reason: 'wrong host' });
  const by = { actor: userActor('test') };
  const outcome = host.try({ kind: 'request', request: { kind: 'skipWait' }, by });
  expect(outcome).toMatchObject({ kind: 'refused', refusal: { reason: 'nothingToDo' } });
});

test('an abort during the wait ends the run, and forces no host off', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  host.request({ kind: 'abort', reason: 'wrong host' });
  host.report(cancelled);
  expect(statusOf(host).run).toMatchObject({
    phase: RunPhase.ENDED,
    outcome: RunOutcome.CANCELLED,
  });
  expect(host.record.operation).toBeUndefined();
});

test('a removal that becomes forced waits for no system any more', () => {
  const host = manageable();
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.shutdown = graceful;
  statusOf(host).poweredOn = true;
  host.request({ kind: 'delete', reason: 'sold' });
  expect([runKind(host), orderedSeconds(host)]).toEqual([RunKind.DELETE, 300]);
  expect(host.request(force).some(({ kind }) => kind === 'cancel')).toBe(true);
  host.report(cancelled);
  expect(orderedSeconds(host)).toBeUndefined();
  expect(host.operation().kind.case).toBe('setPower');
});

test('the time limit of a template’s step does not include the wait', () => {
  const host = provisioned();
  host.request({
    ...{ kind: 'workflow', workflowRun, workflowUid: asWorkflowUid('w1'), templateDigest: 'd1' },
    ...{ timeoutMs: undefined, steps: [rendered('down', 'powerOff', { timeoutMs: 30_000 })] },
  });
  expect(orderedSeconds(host)).toBe(300);
  expect(secondsOf(host.operation().deadline)).toBe(330);
});
