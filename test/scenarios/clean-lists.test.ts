/** Lists of steps, what runs out of band, and what a clean that ended badly leaves. */
import { create } from '@bufbuild/protobuf';
import {
  bench,
  done,
  driveToErase,
  driveToInspect,
  failed,
  inspected,
  verified,
} from '@rackwright/controlplane/testing';
import {
  agent,
  FailureType,
  HostGoal,
  HostState,
  RerunClass,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  continuing,
  erasedWell,
  explained,
  faultsOf,
  orderOf,
  pass,
  refusalOf,
  runnerOffers,
  runnerStep,
  runOf,
  sentBy,
  statusOf,
  stepOf,
  transient,
} from './words.ts';

const minuteMs = 60_000;

const clearLog = create(agent.StepDescriptionSchema, {
  name: 'management.clear_event_log',
  rerunClass: RerunClass.SAFE,
  destructive: false,
});

const list = (...names: string[]) =>
  ({ kind: 'clean', steps: names.map((step) => ({ step, arguments: {} })) }) as const;

/** A verified host that starts nothing by itself, in a rack whose agent has a step of its own. */
function manageable() {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.snapshot = { ...host.snapshot, agentSteps: [clearLog] };
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

test('ironic-9: a step that needs the runner that its list has ended is refused by name', () => {
  const refusal = refusalOf(manageable(), list('powerOff', 'deploy.erase_devices', 'reboot'));
  expect(refusal.fieldViolations).toEqual([
    {
      field: 'steps[1].step',
      description: expect.stringMatching(/^deploy\.erase_devices needs the runner/),
    },
  ]);
});

test('ironic-17: a boot that a step asks for is waited for, and given up after its time', () => {
  const host = manageable();
  const rebooting = { ...runnerStep('bios.set'), rebootAfter: true };
  runnerOffers(host, [rebooting, runnerStep('vendor.tune')]);
  host.request(list('bios.set', 'vendor.tune'));
  driveToInspect(host);
  host.report(inspected());
  host.report(done);
  host.report(done);
  host.report(done);
  expect(stepOf(host)?.name).toBe('runner.await');
  pass(host, 19 * minuteMs);
  expect(runOf(host).waiting?.reason).toBe('runner');
  expect(statusOf(host).lastError).toBeUndefined();
  host.runnerReady();
  expect(orderOf(host.operation())?.step).toBe('vendor.tune');
  for (let minute = 0; minute < 20; minute++) {
    expect(runOf(host).phase).not.toBe(RunPhase.ENDED);
    host.report(transient('runnerAway'));
    pass(host, 61_000);
  }
  host.report(transient('runnerAway'));
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.RUNNER_LOST);
});

test('ironic-21: a step in the runner follows one that the agent ran out of band', () => {
  const host = manageable();
  host.request(list('management.clear_event_log', 'deploy.erase_devices'));
  driveToInspect(host);
  host.report(inspected());
  expect(orderOf(host.operation())).toMatchObject({ step: clearLog.name, bootOperationId: '' });
  for (const percent of [10, 50]) host.report(continuing(clearLog.name, percent));
  expect(stepOf(host)?.name).toBe(clearLog.name);
  const sent = sentBy(host.report(done));
  expect(sent.map((operation) => orderOf(operation)?.step)).toEqual(['deploy.erase_devices']);
});

test('ironic-27: switching off that fails after an abort is a fault beside its error', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  host.report(inspected());
  host.request({ kind: 'abort', reason: 'wrong host' });
  host.report(failed('cancelled'));
  expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
  pass(host, 30 * minuteMs);
  host.report(failed('notApplied', 'the BMC says yes and does nothing'));
  expect(statusOf(host).lastError?.failure?.message).toContain('wrong host');
  expect(faultsOf(host)).toEqual(['powerFailed']);
  expect(statusOf(host).faults[0]?.message).toContain('says yes and does nothing');
});

test('ironic-29: a host that is off after a failed clean boots rescue, or says why not', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('notErased'));
  pass(host, 30 * minuteMs);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ poweredOn: false, afterFailure: { bootOnly: 'runner' } });
  const refusal = refusalOf(host, { kind: 'powerOn', bootOldDiskReason: '' });
  expect(refusal.message).toContain('rescue');
  host.request({ kind: 'rescue', reason: 'look at the disk' });
  host.report(done);
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.bootFrom).toBe(agent.BootTarget.RESCUE);
});

test('ironic-35: after a failed clean a host stays in the runner half an hour, then is off', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('notErased', 'disk DISK-1 gave back what was on it'));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, poweredOn: true });
  expect(explained(host).causes.map(({ text }) => text)).toContainEqual(
    expect.stringContaining('stays in the runner until'),
  );
  expect(sentBy(pass(host, 29 * minuteMs))).toEqual([]);
  const sent = sentBy(pass(host, minuteMs));
  expect(sent.map(({ kind }) => kind.case === 'setPower' && kind.value.on)).toEqual([false]);
  host.report(done);
  expect(statusOf(host).lastError?.run).toBe('clean 3');
  expect(faultsOf(host)).toEqual(['cleanFailed']);
});

test('ironic-61: a password among a step’s arguments is refused, and repeated nowhere', () => {
  const host = manageable();
  const secret = 'correct-horse-battery';
  const steps = [{ step: 'deploy.erase_devices', arguments: { password: secret } }];
  const refusal = refusalOf(host, { kind: 'clean', steps });
  expect(refusal.fieldViolations?.[0]?.description).toContain('takes no password');
  expect(JSON.stringify(refusal)).not.toContain(secret);
});

test('a clean that is aborted at a hold after its erasure leaves the host dirty', () => {
  const host = manageable();
  host.request(list('deploy.erase_devices', 'hold'));
  driveToInspect(host);
  host.report(inspected());
  host.report(erasedWell(host));
  expect(runOf(host).waiting?.reason).toBe('hold');
  host.request({ kind: 'abort', reason: 'enough' });
  expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});
