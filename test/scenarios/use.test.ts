/** What a host is used for against its life: images, adoption, someone else's care, holds. */
import { create, equals } from '@bufbuild/protobuf';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  failed,
  inspected,
  verified,
} from '@rackwright/controlplane/testing';
import {
  CleaningPolicySchema,
  ErasureLevel,
  HoldScope,
  HostGoal,
  HostPower,
  HostState,
  PowerMismatchPolicy,
  RunKind,
  RunOutcome,
  RunPhase,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  driveToAvailable,
  driveToWrite,
  explained,
  faultsOf,
  finishClean,
  observed,
  pass,
  refusalOf,
  runOf,
  statusOf,
  stepOf,
} from './words.ts';

const minuteMs = 60_000;
const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;
const claim = { kind: 'claim', reason: 'database' } as const;
const release = { kind: 'release', reason: 'given back' } as const;

/** Available, to get an image. */
function availableForImages(): Bench {
  const host = bench();
  driveToAvailable(host);
  return host;
}

function finishImage(host: Bench): void {
  driveToWrite(host);
  for (const _ of ['written', 'off', 'on', 'proved']) host.report(done);
}

function provisioned(): Bench {
  const host = availableForImages();
  host.request({ kind: 'provision', image: first });
  finishImage(host);
  expect(statusOf(host).state).toBe(HostState.PROVISIONED);
  return host;
}

test('metal3-9: a provisioning that is complete records the image and counts no failure', () => {
  const host = provisioned();
  expect(statusOf(host).image).toBe(first);
  expect(statusOf(host).backoff).toBeUndefined();
  expect(statusOf(host).lastError).toBeUndefined();
  expect(faultsOf(host)).toEqual([]);
});

test('metal3-13: a failed provisioning counts, and the host is cleaned after a pause', () => {
  const host = availableForImages();
  host.request({ kind: 'provision', image: first });
  driveToWrite(host);
  host.report(failed('internal', 'the write broke off'));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).backoff?.failures).toBe(1);
  pass(host, 60 * minuteMs);
  expect(runOf(host).kind).toBe(RunKind.CLEAN);
  driveToInspect(host);
  host.report(inspected());
  finishClean(host);
  // Ready anew; what had failed is told until a provision succeeds.
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  expect(faultsOf(host)).toEqual(['provisionFailed']);
});

test('metal3-17: a provisioned host stays so when its access cannot be proved any more', () => {
  const host = provisioned();
  host.request({ kind: 'verify' });
  host.report(failed('authentication', 'the BMC refused user admin'));
  expect(statusOf(host).state).toBe(HostState.PROVISIONED);
  expect(faultsOf(host)).toContain('verifyFailed');
  const adopted = bench({ goal: HostGoal.MANAGEABLE });
  adopted.apply({ kind: 'tick' });
  adopted.report(verified());
  adopted.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: 'runs already' });
  adopted.report(failed('authentication', 'the BMC refused user admin'));
  expect(statusOf(adopted).state).toBe(HostState.MANAGEABLE);
  expect(faultsOf(adopted)).toContain('adoptFailed');
});

test('metal3-27: another image is written when it is asked for, and a release cleans', () => {
  const host = provisioned();
  host.request(claim);
  host.request({ kind: 'reimage', image: second });
  finishImage(host);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: second });
  host.request(release);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(runOf(host).kind).toBe(RunKind.CLEAN);
});

test('metal3-31: an external host becomes provisioned without a boot, then is cleaned', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'adopt', to: HostState.EXTERNAL, reason: 'theirs' });
  host.report(verified());
  expect(refusalOf(host, { kind: 'clean', steps: [] }).message).toContain('someone else’s care');
  expect(refusalOf(host, release).message).toContain('adopt it as provisioned');
  host.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: 'ours now' });
  expect(runOf(host).steps.map(({ name }) => name)).toEqual(['bmc.verifyAccess']);
  host.report(verified());
  expect(statusOf(host).state).toBe(HostState.PROVISIONED);
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.goal = HostGoal.AVAILABLE;
  host.request(release);
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
  expect(runOf(host)).toMatchObject({ kind: RunKind.INSPECT, phase: RunPhase.RUNNING });
});

test('metal3-49: a hold that comes during work lets it end, and keeps what would follow', () => {
  const host = bench();
  driveToErase(host);
  const step = stepOf(host)?.name;
  host.request({ kind: 'hold', scope: HoldScope.WORK, reason: 'a look', untilMs: undefined });
  expect(stepOf(host)?.name).toBe(step);
  expect(host.record.operation?.cancelId).toBe('');
  finishClean(host);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  expect(refusalOf(host, { kind: 'inspect' }).message).toContain('a look');
});

test('metal3-51: a hold that is refused, or lifted again, leaves neither error nor count', () => {
  const host = provisioned();
  const before = host.record;
  const hold = { kind: 'hold', scope: HoldScope.RELEASE, reason: 'audit' } as const;
  refusalOf(host, { ...hold, untilMs: host.nowMs - 1 });
  host.request({ ...hold, untilMs: undefined });
  host.request({ kind: 'releaseHold', hold: 'audit', reason: 'over' });
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, holds: [], faults: [] });
  expect(statusOf(host).lastError).toBeUndefined();
  expect(host.record.runCount).toBe(before.runCount);
});

test('metal3-65: a failed deploy is shown with its image, and another image may be tried', () => {
  const host = provisioned();
  host.request(claim);
  host.request({ kind: 'reimage', image: second });
  driveToWrite(host);
  host.report(failed('ioError', 'the write broke off'));
  expect(runOf(host)).toMatchObject({ kind: RunKind.POWER, requestedBy: 'system' });
  expect(statusOf(host).faults[0]?.message).toContain(second);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: '' });
  host.report(done);
  host.request({ kind: 'reimage', image: first });
  finishImage(host);
  expect(statusOf(host).image).toBe(first);
  expect(faultsOf(host)).toEqual([]);
});

test('metal3-69: what a release erases is what the policy says when the clean begins', () => {
  const host = provisioned();
  host.request(release);
  const { spec } = host.record.host ?? {};
  if (spec === undefined) throw new Error('no spec');
  const cleaning = create(CleaningPolicySchema, { level: ErasureLevel.METADATA_ONLY });
  host.request({ kind: 'update', spec: { ...spec, cleaning }, labels: {} });
  expect(runOf(host)).toMatchObject({ kind: RunKind.RELEASE, phase: RunPhase.RUNNING });
  host.report(done);
  const names = runOf(host).steps.map(({ name }) => name);
  expect(names).toContain('deploy.erase_devices_metadata');
  expect(names).not.toContain('deploy.erase_devices');
});

test('metal3-79: a host that is switched off and held stays off until the hold is lifted', () => {
  const host = provisioned();
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.power = HostPower.ON;
  host.snapshot = { ...host.snapshot, powerMismatch: PowerMismatchPolicy.ENFORCE };
  const hold = { kind: 'hold', scope: HoldScope.POWER, reason: 'reboot/ann' } as const;
  host.request({ kind: 'powerOff' });
  host.request({ ...hold, untilMs: undefined });
  host.report(done);
  expect(statusOf(host).poweredOn).toBe(false);
  const on = { kind: 'powerOn', bootOldDiskReason: '' } as const;
  expect(refusalOf(host, on).message).toContain('reboot/ann');
  pass(host, 60 * minuteMs);
  observed(host, { poweredOn: false });
  expect(runOf(host)).toMatchObject({ kind: RunKind.POWER, outcome: RunOutcome.SUCCEEDED });
  const held = host.record;
  pass(host, minuteMs);
  expect(equals(store.HostRecordSchema, held, host.record)).toBe(true);
  expect(explained(host).headline).not.toBe('');
  host.request({ kind: 'releaseHold', hold: 'reboot/ann', reason: 'done' });
  expect(runOf(host).steps.map(({ name }) => name)).toEqual(['power.on']);
});
