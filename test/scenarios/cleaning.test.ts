/** Which steps a clean has, in which order, and how one follows the other. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  bench,
  builtInSteps,
  cleanPlan,
  done,
  driveToErase,
  driveToInspect,
  failed,
  inspected,
  verified,
} from '@rackwright/controlplane/testing';
import {
  agent,
  type CleaningPolicy,
  FailureType,
  HostGoal,
  HostState,
  RunOutcome,
  RunPhase,
  StepState,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  agentSpeaks,
  cancelsIn,
  conflict,
  continuing,
  driveToAvailable,
  erasedWell,
  faultsOf,
  finishClean,
  observed,
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

const automatic = { kind: 'clean', steps: [] } as const;
const manual = (...names: string[]) =>
  ({ kind: 'clean', steps: names.map((step) => ({ step, arguments: {} })) }) as const;

/** A verified host that starts nothing by itself. */
function manageable(spec: Parameters<typeof bench>[0] = {}) {
  const host = bench({ goal: HostGoal.MANAGEABLE, ...spec });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

function planOver(steps: readonly agent.StepDescription[], policy?: CleaningPolicy) {
  const known = steps.map((description) => ({ description, source: 'runner' as const }));
  return cleanPlan({ known, policy });
}

const mixed = [
  runnerStep('management.reset_clock'),
  runnerStep('raid.delete_volumes', 10),
  runnerStep('deploy.erase_devices', 10),
  runnerStep('bios.factory_reset', 99),
  runnerStep('power.cycle_psu', 10),
  runnerStep('deploy.burn_in', 99),
];
const mixedInOrder = [
  'deploy.burn_in',
  'bios.factory_reset',
  'power.cycle_psu',
  'deploy.erase_devices',
  'raid.delete_volumes',
];

test('ironic-1: runs steps by priority and then by interface, as the plan lists them', () => {
  const plan = planOver(mixed);
  expect(plan.enabled.map(({ name }) => name)).toEqual(mixedInOrder);
  expect(plan.disabled.map(({ name }) => name)).toEqual(['management.reset_clock']);
  const host = manageable();
  runnerOffers(host, mixed);
  host.request(automatic);
  driveToInspect(host);
  host.report(inspected());
  const ran: string[] = [];
  for (let order = orderOf(host.operation()); order !== undefined; ) {
    ran.push(order.step);
    host.report(order.step === 'deploy.erase_devices' ? erasedWell(host) : done);
    order = orderOf(host.operation());
  }
  expect(ran).toEqual(mixedInOrder);
  host.report(inspected());
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
});

test('ironic-3: an override of an unknown step warns in the plan and stops nothing', () => {
  const cleaning = { priorityOverrides: { 'deploy.polish': 50 } };
  const host = bench({ cleaning });
  const policy = host.record.host?.spec?.cleaning;
  expect(planOver(builtInSteps, policy).warnings.join()).toContain('deploy.polish');
  driveToAvailable(host);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
});

test('ironic-5: a step that may not run is refused in a list, and skipped with a reason', () => {
  const host = manageable({ cleaning: { priorityOverrides: { 'deploy.burn_in': 0 } } });
  runnerOffers(host, mixed);
  const refusal = refusalOf(host, manual('deploy.erase_devices', 'power.bootRunner'));
  expect(refusal.code).toBe('invalidArgument');
  expect(refusal.fieldViolations?.map(({ field }) => field)).toEqual(['steps[1].step']);
  const skipped = planOver(mixed, host.record.host?.spec?.cleaning).disabled;
  expect(skipped.map(({ name, disabledReason }) => [name, disabledReason])).toEqual([
    ['management.reset_clock', expect.stringContaining('priority is 0')],
    ['deploy.burn_in', expect.stringContaining('priority_overrides')],
  ]);
});

test('ironic-5: a runner brings no step under the name of one of the engine’s own', () => {
  const host = manageable();
  host.request({ kind: 'inspect' });
  host.report(done);
  host.report(done);
  const ready = { hostUid: 'u1', bootOperationId: 'u1/2/1/1', runnerSession: 's1', bootId: 'b1' };
  const steps = [runnerStep('host.forget', 99), runnerStep('deploy.erase_devices', 10)];
  observed(host, { runnerReady: { ...ready, steps } });
  expect(host.snapshot.facts.runnerSteps.map(({ name }) => name)).toEqual(['deploy.erase_devices']);
});

test('ironic-7: a manual list runs in the order in which it was written', () => {
  const host = manageable();
  runnerOffers(host, mixed);
  host.request(manual('management.reset_clock', 'deploy.burn_in'));
  driveToInspect(host);
  host.report(inspected());
  expect(orderOf(host.operation())?.step).toBe('management.reset_clock');
  host.report(done);
  expect(orderOf(host.operation())?.step).toBe('deploy.burn_in');
});

test('ironic-13: the end of a step sends the next at once; a repeated report sends nothing', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: manual('deploy.erase_devices').steps });
  driveToInspect(host);
  host.report(inspected());
  const indexes = [runOf(host).currentStep];
  const sent = [host.operation().id];
  for (const result of [erasedWell(host), inspected(), done]) {
    const { id } = host.operation();
    const effects = host.report(result);
    indexes.push(runOf(host).currentStep);
    sent.push(...sentBy(effects).map((operation) => operation.id));
    const again = host.report(result, id);
    expect(again).toEqual([{ kind: 'answer', verdict: { kind: 'duplicate' } }]);
  }
  expect(indexes).toEqual([4, 5, 6, 7]);
  expect(sent).toEqual(['u1/2/4/1', 'u1/2/5/1', 'u1/2/6/1']);
});

test('ironic-15: a busy agent delays a step; it is neither failed nor skipped', () => {
  const host = bench();
  driveToErase(host);
  const index = runOf(host).currentStep;
  host.report(conflict('the runner is busy', 1_000));
  expect(runOf(host).waiting?.reason).toBe('conflict');
  expect(sentBy(pass(host, 1_000))).toEqual([]);
  const sent = sentBy(pass(host, 1_500));
  expect(sent.map((operation) => orderOf(operation)?.step)).toEqual(['deploy.erase_devices']);
  expect(runOf(host).currentStep).toBe(index);
  expect(statusOf(host).lastError).toBeUndefined();
  finishClean(host);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
});

test('ironic-17: a runner that is away is waited for, and given up after its boot time', () => {
  const afterBoot = bench({ goal: HostGoal.MANAGEABLE });
  afterBoot.apply({ kind: 'tick' });
  afterBoot.report(verified());
  afterBoot.request({ kind: 'inspect' });
  afterBoot.report(done);
  afterBoot.report(done);
  pass(afterBoot, 19 * 60_000);
  expect(runOf(afterBoot).waiting?.reason).toBe('runner');
  pass(afterBoot, 61_000);
  expect(runOf(afterBoot)).toMatchObject({ outcome: RunOutcome.TIMED_OUT });
  expect(runOf(afterBoot).error?.message).toContain('no runner reported');

  const midway = bench();
  driveToErase(midway);
  for (let minute = 0; minute <= 20; minute++) {
    expect(runOf(midway).phase).not.toBe(RunPhase.ENDED);
    midway.report(transient('runnerAway'));
    pass(midway, 61_000);
  }
  midway.report(transient('runnerAway'));
  expect(statusOf(midway).lastError?.failure?.type).toBe(FailureType.RUNNER_LOST);
});

test('ironic-19: a completion that does not show what it owes is an invalid result', () => {
  const cases: [agent.Report['result'], FailureType][] = [
    [done, FailureType.INVALID_RESULT],
    [failed('notErased'), FailureType.NOT_ERASED],
  ];
  for (const [result, type] of cases) {
    const host = bench();
    driveToErase(host);
    host.report(result);
    expect(statusOf(host).lastError?.failure?.type).toBe(type);
    expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  }
  const unknown = bench();
  driveToErase(unknown);
  expect(unknown.report({ case: undefined })).toContainEqual({
    kind: 'answer',
    verdict: { kind: 'refused', cause: 'unsupported', reason: 'unsupported' },
  });
  expect(statusOf(unknown).holds).toHaveLength(1);
  expect(statusOf(unknown).state).not.toBe(HostState.AVAILABLE);
});

test('ironic-21: a step in the runner follows one that the agent polled outside it', () => {
  const host = manageable();
  host.request(automatic);
  host.report(done);
  for (const percent of [10, 50, 90]) {
    host.report(continuing('power.bootRunner', percent));
    expect(stepOf(host)?.name).toBe('power.bootRunner');
  }
  host.report(done);
  host.runnerReady();
  expect(host.operation().kind.case).toBe('inspect');
  const sent = sentBy(host.report(inspected()));
  expect(sent.map((operation) => orderOf(operation)?.step)).toEqual(['deploy.erase_devices']);
});

test('ironic-23: an aborted step stops, and the run says during which step, by whom', () => {
  const host = bench();
  driveToErase(host);
  const { id } = host.operation();
  expect(cancelsIn(host.request({ kind: 'abort', reason: 'wrong host' }))).toEqual([id]);
  host.report(failed('cancelled'));
  const run = runOf(host);
  expect(run.outcome).toBe(RunOutcome.CANCELLED);
  expect(run.error?.message).toBe('aborted during deploy.erase_devices by user:test: wrong host');
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).holds).toEqual([]);
  expect(faultsOf(host)).toEqual([]);
});

test('ironic-25: an abort during the last step ends the clean aborted, completed or not', () => {
  const host = bench();
  driveToErase(host);
  host.report(erasedWell(host));
  host.report(inspected());
  expect(runOf(host).currentStep).toBe(runOf(host).steps.length - 1);
  host.request({ kind: 'abort', reason: '' });
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.CANCELLED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('ironic-29: after a failed clean a host boots its own disk only for a reason', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('notErased'));
  const refusal = refusalOf(host, { kind: 'powerOn', bootOldDiskReason: '' });
  expect(refusal.message).toContain('boot_old_disk_reason');
  host.request({ kind: 'powerOn', bootOldDiskReason: 'read the logs' });
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.bootFrom).toBe(agent.BootTarget.DISK);
  expect(host.record.change?.cause).toContain('read the logs');
  expect(statusOf(host)).toMatchObject({ dirty: true, useEpoch: 2n });
});

test('ironic-31: power that differs during a clean is noted, not corrected', () => {
  const host = bench();
  driveToErase(host);
  const spec = host.record.host?.spec;
  const { id } = host.operation();
  expect(observed(host, { poweredOn: false })).toEqual([]);
  expect(statusOf(host).poweredOn).toBe(false);
  expect(host.record.host?.spec).toEqual(spec);
  expect(host.operation().id).toBe(id);
  expect(runOf(host).phase).toBe(RunPhase.RUNNING);
  expect(sentBy(pass(host, 3_600_000))).toEqual([]);
});

test('ironic-35: a failed step fails the clean, with the step, a fault and its history', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('ioError', 'disk DISK-1 gave an error at byte 0'));
  const run = runOf(host);
  expect(run.outcome).toBe(RunOutcome.FAILED);
  const bad = run.steps.filter((step) => step.state === StepState.FAILED);
  expect(bad.map(({ name, error }) => [name, error])).toEqual([
    ['deploy.erase_devices', 'disk DISK-1 gave an error at byte 0'],
  ]);
  expect(statusOf(host).lastError).toMatchObject({ run: 'clean 3' });
  expect(statusOf(host).faults.map(({ type, clearedBy }) => [type, clearedBy])).toEqual([
    ['cleanFailed', 'a clean run that succeeds'],
  ]);
  expect(host.record.change).toMatchObject({
    actor: 'agent',
    operationId: 'u1/3/4/1',
    cause: expect.stringContaining('clean 3 failed: disk DISK-1'),
  });
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('ironic-37: a step beyond its deadline fails, although the agent is heard', () => {
  const host = bench();
  driveToErase(host);
  const agentWordMs = 15_000;
  const { deadline } = runOf(host).steps.find(({ name }) => name === 'deploy.erase_devices') ?? {};
  if (deadline === undefined) throw new Error('an erasure has a deadline');
  pass(host, timestampMs(deadline) - host.nowMs + agentWordMs - 1_000);
  expect(runOf(host).phase).toBe(RunPhase.RUNNING);
  host.nowMs += 1_000;
  host.apply({ kind: 'tick' });
  expect(runOf(host).phase, 'its agent has not had its word').toBe(RunPhase.RUNNING);
  agentSpeaks(host);
  host.apply({ kind: 'tick' });
  expect(runOf(host).outcome).toBe(RunOutcome.TIMED_OUT);
  expect(runOf(host).error?.type).toBe(FailureType.DEADLINE);
});

test('ironic-41: a retired host ends its clean manageable, and clean', () => {
  const host = manageable({ goal: HostGoal.AVAILABLE, retired: true });
  expect(runOf(host).phase).toBe(RunPhase.ENDED);
  host.request(automatic);
  driveToInspect(host);
  host.report(inspected());
  finishClean(host);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: false });
});

test('ironic-63: a run that is over still shows when each step began and ended', () => {
  const host = bench();
  driveToErase(host);
  host.nowMs += 90_000;
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  pass(host, 86_400_000);
  const { steps, outcome } = runOf(host);
  expect(outcome).toBe(RunOutcome.SUCCEEDED);
  for (const step of steps) {
    if (step.state === StepState.SKIPPED) {
      expect(step.skippedBecause).toBe('the runner is up since inspect 2');
      continue;
    }
    expect(step.startTime, step.name).toBeDefined();
    expect(step.endTime, step.name).toBeDefined();
  }
  const erase = steps.find(({ name }) => name === 'deploy.erase_devices');
  const seconds = Number(erase?.endTime?.seconds ?? 0n) - Number(erase?.startTime?.seconds ?? 0n);
  expect(seconds).toBe(90);
});
