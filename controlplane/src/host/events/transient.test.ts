/** Unknown results: when they are retried, what is reported meanwhile, and when that ends. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  RerunClass,
  RunPhase,
  type TransientName,
  transientCauseOf,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { defaultTiming } from '../pass/timing.ts';
import {
  availableHost,
  type Bench,
  bench,
  bootOfRunner,
  driveToErase,
  driveToInspect,
  failed,
  statusOf,
  stepAt,
} from '../testing/bench.ts';

const { transientFaultCount, transientFaultMs, bootTimeoutMs, registryBudgetMs } = defaultTiming;
const { retryDelayMs, retryDelayMaxMs } = defaultTiming;

function could(cause: TransientName, delayMs?: number): agent.Report['result'] {
  const delay = delayMs === undefined ? {} : { delay: durationFromMs(delayMs) };
  const value = { cause: transientCauseOf(cause), message: `${cause}: no answer`, ...delay };
  return { case: 'transientError', value: create(agent.TransientErrorSchema, value) };
}

/** Advances the clock; the agent is heard all the while. */
function pass(host: Bench, ms: number): void {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('the bench has an agent');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  host.apply({ kind: 'tick' });
}

/** At its first verify, which the BMC answers. */
function verifying(): Bench {
  const host = bench();
  host.apply({ kind: 'tick' });
  return host;
}

function erasing(): Bench {
  const host = bench();
  driveToErase(host);
  return host;
}

const faults = (host: Bench) => statusOf(host).faults.map(({ type }) => type);
const waitsMs = ({ record, nowMs }: Bench): number => {
  const notBefore = record.operation?.notBefore;
  return notBefore === undefined ? 0 : timestampMs(notBefore) - nowMs;
};

test.each<[TransientName, string]>([
  ['unreachable', 'bmc'],
  ['busy', 'bmc'],
  ['runnerAway', 'runner'],
  ['registry', 'registry'],
])('a run that meets %s waits for the %s, since it was first so', (cause, reason) => {
  const host = erasing();
  const firstMs = host.nowMs;
  host.report(could(cause));
  pass(host, 60_000);
  host.report(could(cause));
  expect(statusOf(host).run).toMatchObject({
    phase: RunPhase.WAITING,
    waiting: { reason, message: `${cause}: no answer`, since: timestampFromMs(firstMs) },
  });
});

describe('the next attempt', () => {
  test('comes later and later, up to a longest pause', () => {
    const host = verifying();
    const pauses: number[] = [];
    for (let count = 0; count < 9; count++) {
      host.report(could('unreachable'));
      pauses.push(waitsMs(host));
      pass(host, waitsMs(host));
    }
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(retryDelayMs / 2);
    expect(pauses[0]).toBeLessThan(retryDelayMaxMs / 4);
    expect(pauses.at(-1)).toBeGreaterThan(retryDelayMaxMs / 4);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(retryDelayMaxMs * 1.5);
  });

  test('comes no earlier than was asked for, and not after the budget is over', () => {
    const host = erasing();
    host.report(could('registry', 600_000));
    expect(waitsMs(host)).toBe(600_000);
    pass(host, 600_000);
    host.report(could('registry', 24 * 3_600_000));
    expect(waitsMs(host)).toBe(registryBudgetMs - 600_000);
  });
});

describe('a fault tells that it lasts', () => {
  test('a fault is reported after a number of failures in a row', () => {
    const host = verifying();
    for (let count = 1; count <= transientFaultCount; count++) {
      expect(faults(host)).toEqual([]);
      host.report(could('unreachable'));
      pass(host, retryDelayMaxMs);
    }
    expect(faults(host)).toEqual(['bmcUnreachable']);
  });

  test('a fault is reported after a time, however few the failures are', () => {
    const host = erasing();
    host.report(could('registry', transientFaultMs - 1));
    pass(host, transientFaultMs - 1);
    host.report(could('registry', 1));
    expect(faults(host)).toEqual([]);
    pass(host, 60_000);
    host.report(could('registry'));
    expect(faults(host)).toEqual(['registryUnreachable']);
  });
});

test('a runner that is away for as long as a boot takes has not come back', () => {
  const host = erasing();
  host.report(could('runnerAway'));
  const { operation } = host.record;
  pass(host, bootTimeoutMs);
  expect(operation?.transientCount).toBe(1);
  host.report(could('runnerAway'));
  expect(statusOf(host).lastError).toBeUndefined();
  pass(host, retryDelayMaxMs);
  host.report(could('runnerAway'));
  expect(statusOf(host).lastError?.failure).toMatchObject({
    type: FailureType.RUNNER_LOST,
    message: expect.stringContaining('did not come back: runnerAway: no answer'),
  });
});

test('a registry that is away for longer than its budget ends the run, a BMC does not', () => {
  for (const [cause, type] of [
    ['registry', FailureType.REGISTRY_UNREACHABLE],
    ['unreachable', undefined],
  ] as const) {
    const host = erasing();
    host.report(could(cause));
    pass(host, registryBudgetMs);
    host.report(could(cause));
    expect(statusOf(host).lastError).toBeUndefined();
    pass(host, retryDelayMaxMs);
    host.report(could(cause));
    expect(statusOf(host).lastError?.failure?.type).toBe(type);
  }
});

test('an attempt with a certain end resets the count of transient failures', () => {
  const host = erasing();
  host.report(could('unreachable'));
  pass(host, retryDelayMaxMs);
  expect(host.record.operation?.transientCount).toBe(1);
  host.report(failed('interrupted', 'the agent was restarted'));
  expect(host.record.operation?.transientCount ?? 0).toBe(0);
});

/** An available host at a step of this class, in its runner. */
function serving(rerunClass: RerunClass): Bench {
  const host = availableHost();
  const runnerSteps = [create(agent.StepDescriptionSchema, { name: 'bios.flash', rerunClass })];
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, runnerSteps } };
  host.request({ kind: 'service', steps: [{ step: 'bios.flash', arguments: {} }] });
  driveToInspect(host);
  expect(stepAt(host)).toBe('bios.flash');
  return host;
}

function tell(host: Bench, result: agent.Report['result']): void {
  const operationId = host.record.operation?.operation?.id ?? '';
  const report = create(agent.ReportSchema, { operationId, hostUid: 'u1', result });
  host.apply({ kind: 'report', report });
}

test.each([
  [RerunClass.NEVER_TWICE, true, false],
  [RerunClass.NEVER_TWICE, false, true],
  [RerunClass.SAFE, true, true],
])('a step of class %i that has begun (%j) is waited for: %j', (rerunClass, begun, isWaited) => {
  const host = serving(rerunClass);
  tell(host, { case: 'continuing', value: create(agent.ContinuingSchema, { begun, percent: 1 }) });
  host.report(could('runnerAway'));
  const { run } = statusOf(host);
  expect(run?.waiting?.reason).toBe(isWaited ? 'runner' : 'hold');
  // How far it got is unknown: a person decides whether it begins a second time.
  if (isWaited) return;
  pass(host, bootTimeoutMs);
  expect([stepAt(host), host.record.operation?.sentTo]).toEqual(['bios.flash', undefined]);
});

test('a runner that is refused is told of only while one is waited for', () => {
  const host = serving(RerunClass.SAFE);
  const bootOperationId = bootOfRunner(statusOf(host).run);
  const runnerRefused = { bootOperationId, message: 'an older boot' };
  const value = create(agent.HostUpdatedSchema, { observations: { runnerRefused } });
  host.apply({
    kind: 'report',
    report: create(agent.ReportSchema, { hostUid: 'u1', result: { case: 'hostUpdated', value } }),
  });
  expect(host.record.runnerRefused).toBeUndefined();
});
