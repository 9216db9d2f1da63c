/** The output of steps, responses of webhooks, and reports about a finished run. */
import { create, equals } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  FailureType,
  FleetSpecSchema,
  RerunClass,
  RunOutcome,
  RunPhase,
  StepExitSchema,
  StepState,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { CallResult, HostEffect } from '../pass/types.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { type Bench, failed } from '../testing/bench.ts';
import {
  bootNow,
  exited,
  passOrder,
  passTime,
  rendered,
  runOf,
  script,
  startOn,
  stepNow,
  told,
  workable,
  wrote,
} from '../testing/templates.ts';

function outputIn(effects: readonly HostEffect[]) {
  return effects.flatMap((effect) => (effect.kind === 'stepOutput' ? [effect] : []));
}

test('the end of a program’s output is kept by its attempt, and its last lines in the run', () => {
  const host = workable();
  startOn(host, [script('a', { retries: 1 })]);
  bootNow(host);
  const { id } = host.operation();
  const [kept] = outputIn(host.report(exited(3, 'no route\n')));
  expect(kept).toMatchObject({ operationId: id, exit: { code: 3, outputBytes: 9n } });
  expect(new TextDecoder().decode(kept?.tail)).toBe('no route\n');
  expect(stepNow(host)?.exit).toMatchObject({ code: 3, lastOutput: 'no route\n' });
  passTime(host, 60_000);
  host.report(wrote('well'));
  expect(runOf(host).steps.find(({ title }) => title === 'a')?.exit).toMatchObject({
    code: 0,
    lastOutput: 'well',
  });
});

test('output is bounded: 64 KiB in its record, 2 KiB in the run, whole characters', () => {
  const host = workable();
  startOn(host, [script('a')]);
  bootNow(host);
  const [kept] = outputIn(host.report(wrote(`x${'ä'.repeat(50_000)}`)));
  expect(kept?.tail).toHaveLength(65_536);
  const last = runOf(host).steps.find(({ title }) => title === 'a')?.exit?.lastOutput ?? '';
  expect(new TextEncoder().encode(last)).toHaveLength(2_048);
  expect(last).toMatch(/^ä+$/);
});

test('a hundred steps that all write leave the record below what a store takes', () => {
  const host = workable();
  const text = 'y'.repeat(400);
  const steps = Array.from({ length: 100 }, (_, index) =>
    script(`step-${index}`, { arguments: { script: text }, onFailure: 'continue' }),
  );
  startOn(host, steps);
  bootNow(host);
  for (let count = 0; count < 100; count++) host.report(exited(1, 'z'.repeat(70_000)));
  const bytes = toBytes(host);
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(200_000);
});

function toBytes(host: Bench): number {
  return JSON.stringify(host.record, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  ).length;
}

const url = 'https://hooks.example.org/done?token=secret';

function calling(more: Parameters<typeof rendered>[2] = {}): Bench {
  const host = workable();
  const templates = { webhookUrls: ['https://hooks.example.org/'] };
  host.snapshot = {
    ...host.snapshot,
    fleet: create(FleetSpecSchema, { templates }),
    replica: 'r1',
  };
  startOn(host, [
    rendered('tell', 'webhook', { arguments: { url }, rerunClass: RerunClass.SAFE, ...more }),
  ]);
  return host;
}

function callsIn(effects: readonly HostEffect[]): string[] {
  return effects.flatMap((effect) => (effect.kind === 'callWebhook' ? [effect.id] : []));
}

function answer(host: Bench, result: CallResult, id = host.record.call?.id ?? '') {
  return host.apply({ kind: 'webhookResult', id, result });
}

test('a webhook is in the record before it is called, and its answer moves the run', () => {
  const host = calling();
  expect(host.record.call).toMatchObject({ id: 'u1/2/0/1', caller: 'r1' });
  expect(runOf(host)).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'webhook' } });
  expect(runOf(host).waiting?.message, 'no secret').toBe(
    'https://hooks.example.org has not answered yet',
  );
  const exit = create(StepExitSchema, { code: 200, outputBytes: 2n });
  const output = { exit, tail: new TextEncoder().encode('ok') };
  const effects = answer(host, { kind: 'complete', output });
  expect(outputIn(effects)[0]?.operationId).toBe('u1/2/0/1');
  expect(runOf(host)).toMatchObject({ outcome: RunOutcome.SUCCEEDED });
  expect(runOf(host).steps[0]?.exit).toMatchObject({ code: 200, lastOutput: 'ok' });
  expect(host.record.call).toBeUndefined();
});

test('a webhook is called once, and under the same id after a restart of its replica', () => {
  const host = workable();
  const templates = { webhookUrls: ['https://hooks.example.org/'] };
  host.snapshot = {
    ...host.snapshot,
    fleet: create(FleetSpecSchema, { templates }),
    replica: 'r1',
  };
  const effects = startOn(host, [rendered('tell', 'webhook', { arguments: { url } })]);
  expect(callsIn(effects)).toEqual(['u1/2/0/1']);
  expect(callsIn(host.apply({ kind: 'written' }))).toEqual([]);
  expect(callsIn(host.apply({ kind: 'tick' }))).toEqual(['u1/2/0/1']);
  host.snapshot = { ...host.snapshot, replica: 'r2' };
  expect(callsIn(host.apply({ kind: 'tick' })), 'another replica is at it').toEqual([]);
  expect(callsIn(passTime(host, 120_000)), 'and may be gone').toEqual(['u1/2/0/1']);
});

test('a call with an unknown result is repeated under its id, a failed one under another', () => {
  const host = calling({ retries: 1 });
  answer(host, { kind: 'transientError', message: 'connection reset' });
  expect(host.record.call).toMatchObject({ id: 'u1/2/0/1', transientCount: 1 });
  const wakeMs = nextWakeMs(host.record, host.nowMs) ?? 0;
  expect(callsIn(passTime(host, wakeMs - host.nowMs))).toEqual(['u1/2/0/1']);
  answer(host, { kind: 'failed', type: 'exitCode', message: 'answered 500' });
  expect(runOf(host).waiting?.reason).toBe('retry');
  expect(callsIn(passTime(host, 60_000))).toEqual(['u1/2/0/2']);
  answer(host, { kind: 'failed', type: 'exitCode', message: 'answered 500' });
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.EXIT_CODE },
  });
});

test('a call times out although no agent is there; a late answer changes nothing', () => {
  const host = calling({ timeoutMs: 30_000, onTimeout: 'continue' });
  const { id } = host.record.call ?? { id: '' };
  host.snapshot = { ...host.snapshot, session: undefined };
  passTime(host, 30_000);
  expect(told(host)).toEqual(['tell failed']);
  const before = host.record;
  answer(host, { kind: 'complete' }, id);
  expect(equals(store.HostRecordSchema, host.record, before)).toBe(true);
});

test.each([
  ['is under way', () => {}],
  [
    'could not tell',
    (host: Bench) => answer(host, { kind: 'transientError', message: 'no answer' }),
  ],
])('a call that %s when its time is over is no other call when it must not run twice', (_, go) => {
  const times = { timeoutMs: 30_000, retries: 1 };
  const safe = calling({ ...times, rerunClass: RerunClass.SAFE });
  go(safe);
  passTime(safe, 30_000);
  const pauseMs = (nextWakeMs(safe.record, safe.nowMs) ?? 0) - safe.nowMs;
  expect(callsIn(passTime(safe, pauseMs))).toEqual(['u1/2/0/2']);
  const once = calling({ ...times, rerunClass: RerunClass.NEVER_TWICE });
  go(once);
  passTime(once, 30_000);
  expect(once.record.call).toBeUndefined();
  expect(runOf(once)).toMatchObject({ outcome: RunOutcome.TIMED_OUT });
  expect(callsIn(passTime(once, pauseMs))).toEqual([]);
});

test('no webhook is called while a restored store is not accepted', () => {
  const host = calling();
  answer(host, { kind: 'transientError', message: 'connection reset' });
  host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
  expect(callsIn(passTime(host, 60_000))).toEqual([]);
  expect(runOf(host).waiting?.reason).toBe('restored');
});

test('an aborted run waits for no answer', () => {
  const host = calling();
  host.request({ kind: 'abort', reason: 'enough' });
  expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
  expect(host.record.call).toBeUndefined();
});

test('a report after timedOut is told in the timeline once, and changes nothing else', () => {
  const host = workable();
  startOn(host, [script('a', { timeoutMs: 60_000 })]);
  bootNow(host);
  const { id } = host.operation();
  passOrder(host, 60_000);
  expect(runOf(host).outcome).toBe(RunOutcome.TIMED_OUT);
  const before = host.record;
  const effects = host.report(wrote('done after all'), id);
  expect(effects).toEqual([
    { kind: 'answer', verdict: expect.objectContaining({ kind: 'stale', cause: 'attemptOver' }) },
  ]);
  expect(host.record.change?.cause).toBe(`late complete of ${id}, which changes nothing`);
  expect(equals(store.HostRecordSchema, withoutMemory(host.record), withoutMemory(before))).toBe(
    true,
  );
  const told = host.record;
  expect(host.report(wrote('done after all'), id), 'as the first time').toEqual(effects);
  expect(equals(store.HostRecordSchema, host.record, told)).toBe(true);
});

/** Without fields that only record what was reported. */
function withoutMemory(record: store.HostRecord): store.HostRecord {
  const change = create(store.ChangeSchema);
  return { ...record, change, openOperations: [], settledReports: [] };
}

test('a report after cancelled, by another run’s time too, revives nothing', () => {
  const host = workable();
  startOn(host, [script('a')], 60_000);
  bootNow(host);
  const { id } = host.operation();
  passTime(host, 60_000);
  startOn(host, [script('b')]);
  const before = runOf(host);
  host.report(failed('cancelled'), id);
  expect(host.record.change?.cause).toContain(`late failed of ${id}`);
  expect(runOf(host)).toEqual(before);
});

test('a late report of an attempt that was given up does not end the next one', () => {
  const host = workable();
  startOn(host, [script('a', { timeoutMs: 60_000, retries: 1 })]);
  bootNow(host);
  const { id } = host.operation();
  passOrder(host, 60_000);
  host.report(wrote('late'), id);
  expect(stepNow(host)).toMatchObject({ state: StepState.RUNNING, attempt: 2 });
  expect(stepNow(host)?.exit).toBeUndefined();
  const { deadline } = runOf(host);
  expect(deadline && timestampMs(deadline)).toBeGreaterThan(host.nowMs);
});
