/** Combined promises: repeated, late, out-of-scope or unproved events change nothing. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  HostState,
  RerunClass,
  RunOutcome,
  RunPhase,
  StorageDeviceSchema,
  TransientCause,
  Transport,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  failed,
  inspected,
  virtioDisk,
} from './testing/bench.ts';

function complete(evidence: agent.Evidence): agent.Report['result'] {
  return { case: 'complete', value: create(agent.CompleteSchema, { evidence }) };
}

test('R7: a failure that is delivered twice counts once', () => {
  const host = bench();
  driveToErase(host);
  const { id } = host.operation();
  host.report(failed('ioError'), id);
  const before = host.record;
  expect(before.host?.status?.backoff?.failures).toBe(1);
  host.report(failed('ioError'), id);
  expect(host.record).toEqual(before);
});

test('R7: a result of an earlier attempt changes nothing', () => {
  const host = bench();
  driveToErase(host);
  const { id } = host.operation();
  host.report(failed('interrupted'), id);
  const before = host.record;
  host.report(complete(host.evidence([erased(virtioDisk)])), id);
  expect(host.record).toEqual(before);
});

/** A clean at a step that must never run twice. */
function atNeverTwice(): Bench {
  const host = bench();
  driveToErase(host);
  host.report(complete(host.evidence([erased(virtioDisk)])));
  host.report(inspected());
  host.report(done);
  const step = create(agent.StepDescriptionSchema, {
    name: 'firmware.update',
    rerunClass: RerunClass.NEVER_TWICE,
  });
  host.snapshot = {
    ...host.snapshot,
    facts: { ...host.snapshot.facts, runnerSteps: [step], runnerVersion: 'v1' },
  };
  host.request({ kind: 'clean', steps: [{ step: 'firmware.update', arguments: {} }] });
  driveToInspect(host);
  host.report(inspected());
  expect(host.operation().kind.case).toBe('runStep');
  return host;
}

test('R4: a step that must never run twice is not ordered again once it was cut short', () => {
  const host = atNeverTwice();
  host.report(failed('interrupted'));
  const runs = host.record.host?.status?.run;
  const again = host.record.operation?.operation;
  expect(again?.kind.case === 'runStep' && again.kind.value.step).not.toBe('firmware.update');
  expect(runs?.steps.find(({ name }) => name === 'firmware.update')?.attempt).toBe(1);
});

test.each<[string, agent.Report['result']]>([
  [
    'a transient error',
    {
      case: 'transientError',
      value: create(agent.TransientErrorSchema, {
        cause: TransientCause.UNREACHABLE,
        message: 'silent',
      }),
    },
  ],
  [
    'a conflict',
    {
      case: 'retryAfter',
      value: create(agent.RetryAfterSchema, {
        reason: agent.ConflictReason.LOCKED,
        message: 'busy',
        delay: durationFromMs(10_000),
      }),
    },
  ],
])(
  'R4: a step that must never run twice is not ordered again once it ends with %s',
  (_text, result) => {
    const host = atNeverTwice();
    const value = create(agent.ContinuingSchema, { begun: true });
    host.report({ case: 'continuing', value });
    host.report(result);
    expect(host.record.operation).toBeUndefined();
    expect(host.record.host?.status?.run?.waiting?.reason).toBe('hold');
    const early = atNeverTwice();
    early.report(result);
    expect(early.record.operation?.operation?.id, 'it had not begun').toMatch(/\/2$/);
  },
);

test('a disk out of scope stands in no plan', () => {
  const remote = create(StorageDeviceSchema, {
    ...virtioDisk,
    device: 'sdb',
    serial: 'REMOTE-1',
    transport: Transport.FIBRE_CHANNEL,
  });
  const host = bench();
  driveToErase(host, [virtioDisk, remote]);
  expect(host.record.devicePlan.map(({ device }) => device?.serial)).toEqual(['DISK-1']);
});

test('a disk whose reading proved nothing is not certified', () => {
  const host = bench();
  driveToErase(host);
  const unread = { ...erased(virtioDisk), verdict: agent.VerdictKind.UNVERIFIED };
  host.report(complete(host.evidence([unread])));
  expect(host.record.certified).toEqual([]);
  expect(host.record.host?.status?.run).toMatchObject({
    phase: RunPhase.ENDED,
    outcome: RunOutcome.FAILED,
  });
});

test('H6: certificates of an earlier use say nothing of this one', () => {
  const host = bench();
  driveToErase(host);
  host.report(complete(host.evidence([erased(virtioDisk)])));
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  status.useEpoch += 1n;
  host.report(inspected());
  expect(status.state).not.toBe(HostState.AVAILABLE);
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.NOT_CERTIFIED);
});
