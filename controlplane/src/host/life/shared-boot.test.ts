/** The first clean of a host works in the boot of its inspection. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRunNumber,
  BmcEndpointSchema,
  DeletionMode,
  HoldScope,
  HostGoal,
  type HostSpec,
  HostState,
  NetworkInterfaceSchema,
  RunKind,
  RunOutcome,
  type RunStep,
  SkipCause,
  StepState,
  TransientCause,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { HostEffect, HostRequest } from '../pass/types.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  failed,
  inspected,
  nvmeDisk,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const boot = ['power.off', 'power.bootRunner', 'runner.await'];

/** At the inspection that the goal of a new host has asked for. */
function atInspection(spec: Parameters<typeof bench>[0] = {}): Bench {
  const host = bench(spec);
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.INSPECT, requestedBy: 'goal' });
  return host;
}

function sent(effects: readonly HostEffect[]): agent.Operation[] {
  return effects.flatMap((effect) => (effect.kind === 'send' ? [effect.operation] : []));
}

function inState(host: Bench, state: StepState): RunStep[] {
  return statusOf(host).run?.steps.filter((step) => step.state === state) ?? [];
}

function runnerAway(host: Bench): readonly HostEffect[] {
  const value = create(agent.TransientErrorSchema, {
    cause: TransientCause.RUNNER_AWAY,
    message: 'the runner has not been heard for 30 s',
  });
  return host.report({ case: 'transientError', value });
}

function erasedWell(host: Bench): void {
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
}

function update(host: Bench, change: Partial<HostSpec>): void {
  const { spec } = host.record.host ?? {};
  if (spec === undefined) throw new Error('a host has a spec');
  host.request({ kind: 'update', spec: { ...spec, ...change }, labels: {} });
}

test('a new host is inspected and cleaned in one boot, as two runs', () => {
  const host = atInspection();
  const runner = host.record.runner?.bootOperationId;
  const effects = host.report(inspected());
  expect(sent(effects)).toMatchObject([
    { id: 'u1/3/3/1', kind: { case: 'inspect', value: { bootOperationId: runner } } },
  ]);
  const [look] = host.record.finishedRuns;
  expect(look).toMatchObject({ kind: RunKind.INSPECT, outcome: RunOutcome.SUCCEEDED });
  expect(look?.steps.at(-1)).toMatchObject({ name: 'power.off', state: StepState.SKIPPED });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN, number: 3n });
  expect(inState(host, StepState.SKIPPED)).toMatchObject(
    boot.map((name) => ({ name, attempt: 0, skipCause: SkipCause.SHARED_BOOT })),
  );
  host.report(inspected());
  expect(host.operation().kind).toMatchObject({
    case: 'runStep',
    value: { step: 'deploy.erase_devices', bootOperationId: runner, runnerSession: 's1' },
  });
  erasedWell(host);
  host.report(inspected());
  expect(stepAt(host)).toBe('power.off');
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, poweredOn: false });
});

test('the clean erases the disks that it sees itself, not those of the inspection before', () => {
  const host = atInspection();
  host.report(inspected([virtioDisk]));
  host.report(inspected([nvmeDisk]));
  const { kind } = host.operation();
  const devices = kind.case === 'runStep' ? kind.value.devices : [];
  expect(devices.map(({ device }) => device?.serial)).toEqual(['NVME-1']);
});

test('the clean finds another machine: nothing is written', () => {
  const host = atInspection();
  host.report(inspected());
  host.report(inspected([virtioDisk], { uuid: new Uint8Array(16).fill(7), serial: 'SN-2' }));
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN, outcome: RunOutcome.FAILED });
  expect(host.record.operation).toBeUndefined();
});

const [virtioMac, otherMac] = ['52:54:00:00:00:01', '52:54:00:00:00:99'];
const otherBmc = create(BmcEndpointSchema, { address: '10.0.0.9', credential: 'credentials/c1' });
const workHold: HostRequest = {
  ...{ kind: 'hold', scope: HoldScope.WORK, reason: 'look first', untilMs: undefined },
};

function change(host: Bench, snapshot: Partial<Bench['snapshot']>): void {
  host.snapshot = { ...host.snapshot, ...snapshot };
}

const asked = (request: HostRequest) => (host: Bench) => void host.request(request);

test.each<[string, (host: Bench) => void]>([
  ['a person holds it', asked(workHold)],
  ['a person claims it', asked({ kind: 'claim', reason: 'mine' })],
  ['its goal is less now', (host) => update(host, { goal: HostGoal.MANAGEABLE })],
  ['it is retired', (host) => update(host, { retired: true })],
  ['its BMC is another', (host) => update(host, { bmc: otherBmc })],
  [
    'a boot MAC of it is on no interface',
    (host) => update(host, { bootMacs: [virtioMac, otherMac] }),
  ],
  ['its credential is gone', (host) => change(host, { credentialVersion: undefined })],
  ['its addresses are another host’s', (host) => change(host, { hasReservations: false })],
  ['the store was restored', (host) => change(host, { restored: 'the store is behind' })],
  ['a person is to look first', ({ record }) => void (record.lookFirstSince = timestampFromMs(0))],
  ['its runner was seen off', ({ record }) => void (record.inRunner = false)],
])('a host is switched off after its inspection where %s', (_text, happens) => {
  const host = atInspection({ bootMacs: [virtioMac] });
  happens(host);
  const look = inspected();
  const inventory = look.case === 'complete' ? look.value.observations?.inventory : undefined;
  inventory?.interfaces.push(create(NetworkInterfaceSchema, { mac: virtioMac }));
  host.report(look);
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.INSPECT, outcome: 0 });
  expect(inState(host, StepState.RUNNING)).toMatchObject([{ name: 'power.off' }]);
});

test('an inspection that a person asks for, or ends, leaves no host on', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'inspect' });
  update(host, { goal: HostGoal.AVAILABLE });
  driveToInspect(host);
  host.report(inspected());
  expect(stepAt(host)).toBe('power.off');
  host.report(done);
  expect(statusOf(host).run?.kind).toBe(RunKind.CLEAN);
  expect(inState(host, StepState.RUNNING)).toMatchObject([{ name: 'power.off' }]);

  const aborted = atInspection();
  aborted.request({ kind: 'abort', reason: 'not now' });
  aborted.report(inspected());
  expect(statusOf(aborted).run).toMatchObject({ kind: RunKind.POWER });
  expect(stepAt(aborted)).toBe('power.off');

  const deleted = atInspection();
  deleted.request({ kind: 'delete', mode: DeletionMode.NORMAL, reason: 'sold' });
  deleted.report(inspected());
  expect(statusOf(deleted).run).toMatchObject({ kind: RunKind.DELETE });
  expect(stepAt(deleted)).toBe('power.off');
});

test('an inspection that fails is an inspection that failed', () => {
  const host = atInspection();
  host.report(failed('internal'));
  const { run, faults } = statusOf(host);
  expect(run).toMatchObject({ kind: RunKind.INSPECT, outcome: RunOutcome.FAILED });
  expect(faults.map(({ type }) => type)).toEqual(['inspectFailed']);
});

test('a clean whose runner is lost boots another one, and begins again in it', () => {
  const host = bench();
  driveToErase(host);
  const value = create(agent.RetryAfterSchema, {
    ...{ reason: agent.ConflictReason.INVALID_STATE, message: 'the boot is over' },
    delay: durationFromMs(1_000),
  });
  host.report({ case: 'retryAfter', value });
  expect(host.operation()).toMatchObject({ id: 'u1/3/0/1', kind: { case: 'setPower' } });
  expect(inState(host, StepState.SKIPPED)).toEqual([]);
  expect(
    statusOf(host).run?.steps.every(({ skipCause }) => skipCause === SkipCause.UNSPECIFIED),
  ).toBe(true);
  driveToInspect(host);
  expect(host.operation()).toMatchObject({
    kind: { case: 'inspect', value: { bootOperationId: 'u1/3/1/1' } },
  });
  host.report(inspected());
  erasedWell(host);
  host.report(inspected());
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
});

test('a runner that is away for a while is waited for, as in a boot of the clean’s own', () => {
  const host = bench();
  driveToErase(host);
  runnerAway(host);
  expect(statusOf(host).run?.waiting?.reason).toBe('runner');
  expect(stepAt(host)).toBe('deploy.erase_devices');
});

test('a clean that failed in the boot of its inspection is resumed there, or boots', () => {
  const stays = bench();
  driveToErase(stays);
  stays.report(failed('ioError'));
  stays.request({ kind: 'resume', reason: 'disk reseated' });
  expect(stays.operation().kind).toMatchObject({
    case: 'runStep',
    value: { bootOperationId: 'u1/2/1/1', runnerSession: 's1' },
  });
  runnerAway(stays);
  expect(stepAt(stays), 'nobody waits for the runner of a clean that failed').toBe('power.off');

  const gone = bench();
  driveToErase(gone);
  gone.report(failed('ioError'));
  statusOf(gone).poweredOn = false;
  gone.request({ kind: 'resume', reason: 'disk reseated' });
  expect(stepAt(gone)).toBe('power.off');
});

test('a netboot that nobody ordered is no boot of the clean', () => {
  const host = bench();
  driveToErase(host);
  erasedWell(host);
  const { useEpoch } = statusOf(host);
  const unexpectedNetboot = { hostUid: 'u1', mac: virtioMac, seenInBand: true };
  const value = create(agent.HostUpdatedSchema, { observations: { unexpectedNetboot } });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
  expect(statusOf(host).useEpoch).toBe(useEpoch + 1n);
});

test('the clean takes the place in the runner before the inspection leaves it', () => {
  const host = atInspection();
  const quota = { kind: 'atOnce', hosts: 1 } as const;
  const own = [{ run: asRunNumber(2), kind: 'open' }] as const;
  change(host, { quotaViews: [{ name: 'runner', quota, own, nextSlotMs: undefined }] });
  const effects = host.report(inspected());
  const changes = effects.flatMap((effect) => (effect.kind === 'quota' ? [effect.change] : []));
  expect(changes).toMatchObject([
    { kind: 'occupy', owner: { run: 3n } },
    { kind: 'leave', owner: { run: 2n } },
  ]);
  expect(sent(effects), 'nobody waits for a slot that he has').toHaveLength(1);
});

test('R8: the list is that of the runner that is up, whatever was kept of it', () => {
  const host = atInspection();
  const { runner } = host.record;
  if (runner === undefined) throw new Error('the runner is up');
  const named = (name: string, priority: number) =>
    create(agent.StepDescriptionSchema, { name, priority, destructive: false });
  runner.steps = [named('deploy.erase_devices', 10), named('vendor.tune', 5)];
  runner.runnerVersion = '9';
  host.report(inspected());
  const names = statusOf(host).run?.steps.map(({ name }) => name);
  expect(statusOf(host).run?.runnerVersion).toBe('9');
  expect(names?.slice(3)).toEqual([
    ...['runner.inspect', 'deploy.erase_devices', 'vendor.tune'],
    ...['runner.inspectAgain', 'power.off'],
  ]);
});
