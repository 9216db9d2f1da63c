/** The six results of DESIGN §3: what each may change, and what it may not. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, FailureType, HostState, RunPhase, TransientCause } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { defaultTiming } from '../pass/timing.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  erased,
  failed,
  inspected,
  stepAt,
  virtioDisk,
} from '../testing/bench.ts';

const { conflictBudgetMs, retryDelayMs } = defaultTiming;
const silent = create(agent.TransientErrorSchema, {
  cause: TransientCause.UNREACHABLE,
  message: 'no answer',
});
const status = (host: Bench) => {
  const found = host.record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
};

function conflict(reason: agent.ConflictReason, delayMs = 1_000): agent.Report['result'] {
  const delay = durationFromMs(delayMs);
  return {
    case: 'retryAfter',
    value: create(agent.RetryAfterSchema, { reason, message: 'somebody is at it', delay }),
  };
}

/** Reports without a sequence number, like all that do not end an attempt. */
function say(host: Bench, result: agent.Report['result']): void {
  const { id: operationId } = host.operation();
  const report = create(agent.ReportSchema, { operationId, hostUid: 'u1', result });
  host.apply({ kind: 'report', report });
}

function passTo(host: Bench, ms: number): void {
  host.nowMs += ms;
  host.snapshot = {
    ...host.snapshot,
    ...(host.snapshot.session === undefined
      ? {}
      : { session: { ...host.snapshot.session, lastMessageMs: host.nowMs } }),
  };
  host.apply({ kind: 'tick' });
}

describe('retryAfter', () => {
  test.each([
    agent.ConflictReason.LOCKED,
    agent.ConflictReason.DUPLICATE,
    agent.ConflictReason.FAULT,
  ])(
    'a retryAfter for reason %i says what it waits for, and touches neither error nor count',
    (reason) => {
      const host = bench();
      driveToErase(host);
      host.report(failed('ioError', 'disk DISK-1 said no'));
      passTo(host, 120_000);
      const { lastError, backoff, faults } = status(host);
      host.report(conflict(reason));
      expect(status(host)).toMatchObject({ lastError, backoff, faults });
      expect(status(host).run?.waiting).toMatchObject({
        reason: 'conflict',
        message: 'somebody is at it',
      });
    },
  );

  test('a retryAfter of a step that the runner had before means that it was cut short (R4)', () => {
    const host = bench();
    driveToErase(host);
    host.report(conflict(agent.ConflictReason.DUPLICATE));
    const run = status(host).run;
    expect(run?.steps[run.currentStep]).toMatchObject({ interruptions: 1, attempt: 2 });
    expect(run?.waiting?.reason).not.toBe('conflict');
  });

  test('may last for its budget from the first one; then the step has failed', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    const firstMs = host.nowMs;
    while (host.nowMs - firstMs < conflictBudgetMs) {
      host.report(conflict(agent.ConflictReason.LOCKED));
      expect(status(host).run?.phase).toBe(RunPhase.WAITING);
      passTo(host, 30_000);
    }
    host.report(conflict(agent.ConflictReason.LOCKED));
    expect(status(host).lastError?.failure?.type).toBe(FailureType.CONFLICT);
  });

  test('is looked at again no earlier than was asked for, nor at once', () => {
    for (const [askedMs, waitsMs] of [
      [30_000, 30_000],
      [1, retryDelayMs],
    ] as const) {
      const host = bench();
      host.apply({ kind: 'tick' });
      host.report(conflict(agent.ConflictReason.LOCKED, askedMs));
      const notBefore = host.record.operation?.notBefore ?? timestampFromMs(0);
      expect(timestampMs(notBefore) - host.nowMs).toBe(waitsMs);
    }
  });

  test('cannot make its budget longer by a long delay', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    host.report(conflict(agent.ConflictReason.LOCKED, 24 * 3_600_000));
    passTo(host, conflictBudgetMs);
    expect(host.record.operation?.sentTo).toBeDefined();
    passTo(host, 1_000);
    host.report(conflict(agent.ConflictReason.LOCKED));
    expect(status(host).lastError?.failure?.type).toBe(FailureType.CONFLICT);
  });

  test('is no interruption: after many of them one interruption does not fail the run', () => {
    const host = bench();
    driveToErase(host);
    for (let n = 0; n < 10; n++) {
      host.report(conflict(agent.ConflictReason.LOCKED));
      passTo(host, 5_000);
    }
    host.report(failed('interrupted', 'the agent was restarted'));
    expect(status(host).run?.phase).not.toBe(RunPhase.ENDED);
    expect(status(host).lastError).toBeUndefined();
  });
});

describe('what does not end an attempt', () => {
  test.each<[string, agent.Report['result']]>([
    [
      'progress of more than a hundred percent',
      { case: 'continuing', value: create(agent.ContinuingSchema, { percent: 101 }) },
    ],
    ['facts without facts', { case: 'hostUpdated', value: create(agent.HostUpdatedSchema, {}) }],
    ['a kind that is not known', { case: undefined }],
  ])('does not end it by being nonsense: %s', (_text, result) => {
    const host = bench();
    driveToErase(host);
    const before = host.record;
    say(host, result);
    expect(host.record).toEqual(before);
  });

  test('changes no error, no count and no run by its facts', () => {
    const host = bench();
    driveToErase(host);
    const { run, lastError, backoff, state } = status(host);
    const observations = create(agent.ObservationsSchema, {
      poweredOn: true,
      inventory: { bootId: 'b9' },
    });
    const value = create(agent.HostUpdatedSchema, { observations });
    say(host, { case: 'hostUpdated', value });
    expect(host.snapshot.facts.inventory?.bootId).toBe('b9');
    expect(status(host)).toMatchObject({ state, ...(run === undefined ? {} : { run }) });
    expect(status(host).lastError).toEqual(lastError);
    expect(status(host).backoff).toEqual(backoff);
  });
});

describe('a final result', () => {
  test.each<[string, agent.Report['result']]>([
    ['done', done],
    ['failed', failed('ioError', 'no')],
    ['in conflict', conflict(agent.ConflictReason.LOCKED)],
    ['not to be told', { case: 'transientError', value: silent }],
  ])('is answered as applied once it was: %s', (_text, result) => {
    const host = bench();
    driveToErase(host);
    host.report(failed('interrupted', 'the agent was restarted'));
    const effects = host.report(result);
    const answers = effects.filter(({ kind }) => kind === 'answer');
    expect(answers).toEqual([{ kind: 'answer', verdict: { kind: 'applied' } }]);
  });

  test('the result of a Cancel is answered, and leaves what it stops under way', () => {
    const host = bench();
    driveToErase(host);
    host.request({ kind: 'abort', reason: 'a look' });
    const { id } = host.operation();
    const effects = host.report(done, host.record.operation?.cancelId);
    expect(effects).toContainEqual({ kind: 'answer', verdict: { kind: 'applied' } });
    expect(host.record.operation?.operation?.id).toBe(id);
  });

  test('a result of another runner than the one that erased interrupts, and is no failure', () => {
    const host = bench();
    driveToErase(host);
    const evidence = host.evidence([erased(virtioDisk)]);
    host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
    expect(stepAt(host)).toBe('runner.inspectAgain');
    if (host.record.runner !== undefined) host.record.runner.runnerSession = 's2';
    host.report(inspected());
    const { run, lastError } = status(host);
    expect(lastError).toBeUndefined();
    expect(run?.phase).not.toBe(RunPhase.ENDED);
    expect(run?.steps[run.currentStep]).toMatchObject({ name: 'runner.inspectAgain', attempt: 2 });
  });

  test('a result of a kind that is not known holds the host, and is no success', () => {
    const host = bench();
    driveToErase(host);
    const effects = host.report({ case: undefined });
    expect(effects).toContainEqual({
      kind: 'answer',
      verdict: { kind: 'refused', cause: 'unsupported', reason: 'unsupported' },
    });
    expect(status(host).holds).toHaveLength(1);
    expect(status(host).state).toBe(HostState.MANAGEABLE);
  });

  test('a result that comes again changes nothing, and is answered', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    const { id } = host.operation();
    host.report(failed('ioError', 'no'));
    const before = host.record;
    const effects = host.report(failed('ioError', 'no'), id);
    expect(host.record).toEqual(before);
    expect(effects).toEqual([{ kind: 'answer', verdict: { kind: 'duplicate' } }]);
    expect(host.report(done, id)).toMatchObject([{ verdict: { kind: 'stale' } }]);
    expect(host.record).toEqual(before);
  });

  test.each([
    ['of a run that was never started', 'u1/99/0/1', 'refused', 'neverStarted'],
    ['of another host', 'u2/1/0/1', 'refused', 'notOfHost'],
    ['of an attempt before', 'u1/1/0/1', 'stale', 'settled'],
    ['of the Cancel of an attempt before', 'u1/1/0/1/cancel', 'stale', 'settled'],
  ])('%s is acknowledged and changes nothing', (_text, id, kind, cause) => {
    const host = bench();
    driveToErase(host);
    const before = host.record;
    expect(host.report(done, id)).toMatchObject([{ kind: 'answer', verdict: { kind, cause } }]);
    expect(host.record).toEqual(before);
  });
});
