/** A runner that is gone for good: only another boot advances the run. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  HostState,
  RunOutcome,
  StepState,
  TransientCause,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { defaultTiming } from '../pass/timing.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { bootNow, passTime, script, startOn, workable, wrote } from '../testing/templates.ts';

/** An agent's answer to an order for a boot that is over. */
const bootOver: agent.Report['result'] = {
  case: 'retryAfter',
  value: create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.INVALID_STATE,
    message: 'the boot is over: the host was booted again',
    delay: durationFromMs(0),
  }),
};

const statusOf = (host: Bench) => host.record.host?.status;
const stepAt = (host: Bench) => statusOf(host)?.run?.steps[statusOf(host)?.run?.currentStep ?? -1];

test('a step whose boot is over boots the host again and ends certified', () => {
  const host = bench();
  driveToErase(host);
  const before = host.operation().id;
  host.report(bootOver);
  expect(stepAt(host)?.name).toBe('power.off');
  expect(statusOf(host)?.run?.steps.map(({ state }) => state)).toContain(StepState.PENDING);
  driveToInspect(host);
  host.report(inspected([virtioDisk]));
  const { id, kind } = host.operation();
  expect(kind.case).toBe('runStep');
  expect(id).not.toBe(before);
  host.report({
    case: 'complete',
    value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
  });
  host.report(inspected([virtioDisk]));
  host.report(done);
  expect(statusOf(host)?.state).toBe(HostState.AVAILABLE);
});

test('a step whose lease has not come waits in the boot that it has', () => {
  const host = bench();
  driveToErase(host);
  host.report({
    case: 'retryAfter',
    value: create(agent.RetryAfterSchema, {
      reason: agent.ConflictReason.NOT_READY,
      message: 'The work lease did not come until the deadline.',
      delay: durationFromMs(10_000),
    }),
  });
  expect(stepAt(host)?.name).toBe('deploy.erase_devices');
  expect(statusOf(host)?.run).toMatchObject({ outcome: RunOutcome.UNSPECIFIED });
});

test('a host that is restarted again and again is given up', () => {
  const host = bench();
  driveToErase(host);
  for (let boots = 0; boots < 10; boots++) {
    host.report(bootOver);
    if (statusOf(host)?.run?.outcome === RunOutcome.FAILED) break;
    driveToInspect(host);
    host.report(inspected([virtioDisk]));
  }
  expect(statusOf(host)?.run).toMatchObject({ outcome: RunOutcome.FAILED });
  expect(statusOf(host)?.run?.error?.type).toBe(FailureType.INTERRUPTED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('a host whose grant was lost while it booted is booted again', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(done);
  const boot = host.operation().id;
  host.report(done);
  const journal = create(agent.JournalSchema, { id: 'j1', generation: 1n });
  host.apply({ kind: 'hello', journal, listed: [], grants: [boot] });
  expect(stepAt(host)?.name).toBe('runner.await');
  host.apply({ kind: 'hello', journal, listed: [], grants: [] });
  expect(stepAt(host)?.name).toBe('power.off');
  driveToInspect(host);
  expect(stepAt(host)?.name).toBe('runner.inspect');
  host.apply({ kind: 'hello', journal, listed: [], grants: [] });
  expect(stepAt(host)?.name).toBe('runner.inspect');
});

test('a script whose runner is lost runs again behind another boot, once a person lets it', () => {
  const host = workable();
  startOn(host, [script('first'), script('look', { onFailure: 'hold' })]);
  bootNow(host);
  host.report(wrote(''));
  const value = create(agent.TransientErrorSchema, { cause: TransientCause.RUNNER_AWAY });
  host.report({ case: 'transientError', value });
  passTime(host, defaultTiming.bootTimeoutMs + 1);
  host.report({ case: 'transientError', value });
  expect(statusOf(host)?.run?.waiting?.reason).toBe('hold');
  host.request({ kind: 'resume', reason: 'the link is mended' });
  expect(stepAt(host)?.name).toBe('power.off');
  bootNow(host);
  // What the first one left in memory is lost with the boot.
  expect(stepAt(host)?.title).toBe('first');
  host.report(wrote(''));
  expect(stepAt(host)?.title).toBe('look');
});
