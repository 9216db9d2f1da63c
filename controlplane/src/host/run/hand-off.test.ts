/** The end of a hand-off, which acts when it counts: for a finished run it never does. */
import { create } from '@bufbuild/protobuf';
import { agent, RunOutcome } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { WorkflowStep } from '../pass/types.ts';
import { type Bench, done } from '../testing/bench.ts';
import {
  bootNow,
  passOrder,
  passTime,
  runOf,
  script,
  startOn,
  told,
  workable,
  wrote,
} from '../testing/templates.ts';

/** A hand-off has been ordered, and has no result yet. */
function ordered(
  more: Partial<WorkflowStep> = {},
  timeoutMs?: number,
): { host: Bench; id: string } {
  const host = workable();
  startOn(host, [script('kexec', { handOff: true, ...more }), script('check')], timeoutMs);
  bootNow(host);
  return { host, id: host.operation().id };
}

/** The answer to the agent's report of this end of the hand-off. */
function answered(host: Bench, id: string, result: agent.Report['result'] = done): string[] {
  const effects = host.report(result, id);
  return effects.flatMap((effect) => (effect.kind === 'answer' ? [effect.verdict.kind] : []));
}

/** Time without a pass: the next event is the first to see it. */
function passUnseen(host: Bench, ms: number): void {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('no session');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
}

test('a hand-off of a run under way counts, and so does its report when it comes again', () => {
  const { host, id } = ordered();
  expect(answered(host, id)).toEqual(['applied']);
  expect(answered(host, id)).toEqual(['duplicate']);
});

test('a hand-off of a run that has succeeded counts, also after another run has begun', () => {
  const host = workable();
  startOn(host, [script('kexec', { handOff: true })]);
  bootNow(host);
  const { id } = host.operation();
  expect(answered(host, id)).toEqual(['applied']);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  startOn(host, [script('next')]);
  expect(answered(host, id)).toEqual(['duplicate']);
});

test.each([
  ['fail', RunOutcome.TIMED_OUT],
  ['continue', RunOutcome.UNSPECIFIED],
])(
  'a hand-off never acts after its time, however often it is told (onTimeout: %s)',
  (policy, outcome) => {
    const { host, id } = ordered({ timeoutMs: 60_000, onTimeout: policy });
    passOrder(host, 60_000);
    expect(runOf(host).outcome).toBe(outcome);
    const answers = [answered(host, id), answered(host, id), answered(host, id)];
    expect(answers).toEqual([['stale'], ['stale'], ['stale']]);
  },
);

test('a hand-off of a run that was aborted meanwhile never acts', () => {
  const { host, id } = ordered();
  host.request({ kind: 'abort', reason: 'wrong kernel' });
  expect(answered(host, id)).toEqual(['stale']);
  expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
  expect(told(host)).toEqual(['kexec failed', 'check skipped']);
  expect(answered(host, id)).toEqual(['stale']);
});

test.each([
  ['its own time', { timeoutMs: 60_000 }, undefined],
  ['the time of its run', {}, 60_000],
])(
  'a hand-off never acts when %s is over in the pass that takes its report',
  (_what, more, timeoutMs) => {
    const { host, id } = ordered(more, timeoutMs);
    passUnseen(host, 600_000);
    expect(answered(host, id)).toEqual(['stale']);
    expect(runOf(host).outcome).toBe(RunOutcome.TIMED_OUT);
    expect(told(host)).toEqual(['kexec failed', 'check skipped']);
    expect(answered(host, id)).toEqual(['stale']);
  },
);

test('a hand-off never acts once its run was aborted, though only its answer was lost', () => {
  const { host, id } = ordered();
  expect(answered(host, id)).toEqual(['applied']);
  host.request({ kind: 'abort', reason: 'enough' });
  expect(answered(host, id)).toEqual(['stale']);
});

test('a hand-off never acts once its run has timed out, also after another run has begun', () => {
  const { host, id } = ordered({}, 300_000);
  expect(answered(host, id)).toEqual(['applied']);
  host.report(done);
  passTime(host, 600_000);
  expect(runOf(host).outcome).toBe(RunOutcome.TIMED_OUT);
  startOn(host, [script('next')]);
  expect(answered(host, id)).toEqual(['stale']);
});

test('a report that only counts is a duplicate all the same when its run was aborted', () => {
  const host = workable();
  startOn(host, [script('a'), script('b')]);
  bootNow(host);
  const { id } = host.operation();
  expect(answered(host, id, wrote('well'))).toEqual(['applied']);
  host.request({ kind: 'abort', reason: 'enough' });
  expect(answered(host, id, wrote('well'))).toEqual(['duplicate']);
});

test('a result that was not understood is refused again when it comes again', () => {
  const { host, id } = ordered();
  const odd = { case: 'failed', value: create(agent.FailedSchema) } as const;
  const first = answered(host, id, { case: undefined });
  expect(first).toEqual(['refused']);
  expect(answered(host, id, { case: undefined })).toEqual(['refused']);
  expect(answered(host, id, odd)).toEqual(['stale']);
});
