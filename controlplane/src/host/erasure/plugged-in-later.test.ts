/** Disks that are added to an available host, or removed and returned: none is used unerased. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  FailureType,
  HostGoal,
  HostState,
  RunOutcome,
  StorageDeviceSchema,
  StorageRegionSchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  availableHost,
  type Bench,
  disklessHost,
  done,
  driveToInspect,
  inspected,
  statusOf,
  stepAt,
  virtioDisk,
} from '../testing/bench.ts';

const image = `registry.example/os@sha256:${'ab'.repeat(32)}`;
const { sizeBytes } = virtioDisk;
const foreign = create(StorageDeviceSchema, {
  ...virtioDisk,
  ...{ device: 'vdb', serial: 'DISK-2' },
  regions: [create(StorageRegionSchema, { name: 'vdb', sizeBytes, logicalBlockBytes: 512 })],
});

/** Runs an inspection to its end. */
function sees(host: Bench, devices: (typeof virtioDisk)[]): void {
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(inspected(devices));
  host.report(done);
}

test('no image comes onto a host into which a disk was plugged after its clean', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image });
  if (stepAt(host) === 'deploy.fetch_image') host.report(done);
  driveToInspect(host);
  host.report(inspected([virtioDisk, foreign]));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  const { outcome, error } = statusOf(host).run ?? {};
  expect(outcome).toBe(RunOutcome.FAILED);
  expect(error).toMatchObject({ type: FailureType.NOT_CERTIFIED });
  expect(error?.message).toContain('DISK-2');
});

test('no image comes onto a host that somebody has switched on during its provision', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image });
  expect(stepAt(host)).toBe('deploy.fetch_image');
  const observations = create(agent.ObservationsSchema, { poweredOn: true });
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  host.report(done);
  driveToInspect(host);
  host.report(inspected());
  expect(statusOf(host).run).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.NOT_CERTIFIED },
  });
});

test('a disk plugged into a diskless available host keeps it from being available', () => {
  const host = disklessHost();
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  host.request({ kind: 'provision', image });
  if (stepAt(host) === 'deploy.fetch_image') host.report(done);
  driveToInspect(host);
  host.report(inspected([foreign]));
  expect(statusOf(host).lastError?.failure).toMatchObject({ type: FailureType.NOT_CERTIFIED });
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('a disk that was removed for a time is erased again', () => {
  const host = availableHost();
  const { useEpoch } = statusOf(host);
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.goal = HostGoal.AVAILABLE;
  sees(host, []);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  sees(host, [virtioDisk]);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).useEpoch).toBeGreaterThan(useEpoch);
});

test('an image may come onto the disks that its run has seen, and no others', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image });
  if (stepAt(host) === 'deploy.fetch_image') host.report(done);
  driveToInspect(host);
  host.report(inspected());
  expect(stepAt(host)).toBe('deploy.write_image');
  const { kind } = host.operation();
  const devices = kind.case === 'runStep' ? kind.value.devices : [];
  expect(devices.map(({ device }) => device?.serial)).toEqual(['DISK-1']);
});

test('no image is ordered for a host whose run has seen no disk', () => {
  for (const host of [availableHost(), disklessHost()]) {
    host.request({ kind: 'provision', image });
    if (stepAt(host) === 'deploy.fetch_image') host.report(done);
    driveToInspect(host);
    host.report(inspected([]));
    expect(stepAt(host)).not.toBe('deploy.write_image');
    expect(statusOf(host).lastError?.failure).toMatchObject({ type: FailureType.NO_ROOT_DISK });
  }
});

test('a disk of the same serial is another one when it says another size, model or WWN', () => {
  const changes = [{ sizeBytes: 2n * sizeBytes }, { model: 'other' }, { wwn: 'naa.5' }];
  for (const change of changes) {
    const host = availableHost();
    sees(host, [create(StorageDeviceSchema, { ...virtioDisk, ...change })]);
    expect(statusOf(host), JSON.stringify(Object.keys(change))).toMatchObject({ dirty: true });
  }
});
