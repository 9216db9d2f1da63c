/** One run erases by several steps, each by its own method; nothing outside the plan is signed. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, FailureType, HostGoal, HostState, RunOutcome } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  inspected,
  nvmeDisk,
  statusOf,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const { METADATA_ONLY, DISCARD } = agent.ErasureMethod;
const metadata = 'deploy.erase_devices_metadata';
const whole = 'deploy.erase_devices';
type Outcome = MessageInitShape<typeof agent.DeviceOutcomeSchema>;

/** A manual clean of these steps, at its first erasure. */
function startedWith(steps: readonly string[], disks = [virtioDisk]): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'clean', steps: steps.map((step) => ({ step, arguments: {} })) });
  driveToInspect(host);
  host.report(inspected(disks));
  return host;
}

function ordered(host: Bench): agent.RunStep {
  const { kind } = host.operation();
  if (kind.case !== 'runStep') throw new Error(`a step was to be ordered, not ${kind.case}`);
  return kind.value;
}

function brings(host: Bench, outcomes: Outcome[], more: { ofFailedStep?: boolean } = {}) {
  const evidence = host.evidence(outcomes, more);
  return host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
}

/** Reports what the present step was ordered to do. */
function eraseAsOrdered(host: Bench, disks = [virtioDisk]): void {
  const { devices } = ordered(host);
  brings(
    host,
    disks.map((disk, index) => erased(disk, devices[index]?.method ?? DISCARD)),
  );
}

describe('two erasures in one list', () => {
  test.each([[[metadata, whole]], [[whole, metadata]]])('the steps %s both succeed', (steps) => {
    const host = startedWith(steps);
    const methods = steps.map((step) => {
      expect(ordered(host).step).toBe(step);
      const method = ordered(host).devices[0]?.method;
      eraseAsOrdered(host);
      return method;
    });
    expect(methods).toEqual(steps.map((step) => (step === metadata ? METADATA_ONLY : DISCARD)));
    host.report(inspected());
    host.report(done);
    expect(statusOf(host).run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(statusOf(host)).toMatchObject({ dirty: false });
    expect(statusOf(host).lastCleaned?.certificates).toHaveLength(2);
  });

  test('two erasures by priorities make a host available', () => {
    const host = bench({ cleaning: { priorityOverrides: { [metadata]: 20 } } });
    driveToErase(host);
    expect(ordered(host).step).toBe(metadata);
    eraseAsOrdered(host);
    expect(ordered(host).step).toBe(whole);
    eraseAsOrdered(host);
    host.report(inspected());
    host.report(done);
    expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  });

  test('two erasures leave a host dirty that has a disk with only its metadata erased', () => {
    const host = startedWith([whole, 'reboot', metadata]);
    eraseAsOrdered(host);
    host.report(done);
    host.report(done);
    host.runnerReady();
    host.report(inspected([virtioDisk, nvmeDisk]));
    eraseAsOrdered(host, [virtioDisk, nvmeDisk]);
    host.report(inspected([virtioDisk, nvmeDisk]));
    host.report(done);
    expect(statusOf(host).run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(statusOf(host).dirty).toBe(true);
  });
});

describe('nothing is signed', () => {
  const stranger = { ...virtioDisk, serial: 'VICTIM-DISK-OF-ELSEWHERE' };
  test.each<[string, Outcome[], { ofFailedStep?: boolean }]>([
    ['of a disk out of the plan', [erased(virtioDisk), erased(stranger)], {}],
    ['when a stranger stands for the disk of the plan', [erased(stranger)], {}],
    ['of a disk that is named twice', [erased(virtioDisk), erased(virtioDisk)], {}],
    ['of a disk without a name', [erased(virtioDisk), { ...erased(virtioDisk), device: {} }], {}],
    ['of a thousand foreign disks', Array(1_150).fill(erased(stranger)), {}],
    ['by evidence of a step that failed', [erased(virtioDisk)], { ofFailedStep: true }],
  ])('nothing is signed %s', (_text, outcomes, more) => {
    const host = bench();
    driveToErase(host);
    const effects = brings(host, outcomes, more);
    expect(effects.map(({ kind }) => kind)).not.toContain('certify');
    expect(host.record.certified).toEqual([]);
    expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.INVALID_RESULT);
    expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  });
});
