/**
 * A disk that another host is known to have: reported, and neither erased, written nor certified.
 */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  CleaningPolicySchema,
  DiskElsewhereSchema,
  disksNamedBy,
  FailureType,
  HostGoal,
  HostSpecSchema,
  HostState,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  erased,
  inspected,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { failureOf } from './gaps.ts';

function said(host: Bench, ...disks: [device: string, host: string][]): void {
  host.snapshot = { ...host.snapshot, disksElsewhere: new Map(disks) };
}

/** A host whose goal is manageable, at its first inspection. */
function looking(goal: HostGoal = HostGoal.MANAGEABLE): Bench {
  const host = bench({ goal });
  host.apply({ kind: 'tick' });
  host.report(verified());
  if (stepAt(host) === '') host.request({ kind: 'inspect' });
  driveToInspect(host);
  return host;
}

/** All causes in the explanation of a host, one a line. */
function toldOf(host: Bench): string {
  const { causes } = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  return causes.map(({ text }) => text).join('\n');
}

const faults = (host: Bench) => statusOf(host).faults.map(({ type }) => type);

test('a disk elsewhere is a fault with advice, until a look finds it no more', () => {
  const host = looking();
  said(host, ['DISK-1', 'hosts/h9']);
  host.report(inspected());
  host.report(done);
  expect(statusOf(host).faults).toMatchObject([
    {
      type: 'diskKnownElsewhere',
      message: expect.stringMatching(/^disk DISK-1 is known as attached to hosts\/h9: if it was/),
    },
  ]);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.causes.map(({ text }) => text).join()).toMatch(
    /DISK-1 is known as attached to hosts\/h9/,
  );
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  said(host);
  host.report(inspected());
  expect(faults(host)).toEqual([]);
});

test('a disk elsewhere stops a clean before it writes, and no certificate is signed', () => {
  const host = looking(HostGoal.AVAILABLE);
  host.report(inspected());
  said(host, ['DISK-1', 'hosts/h9']);
  host.report(inspected());
  expect(statusOf(host).lastError?.failure).toMatchObject({
    type: FailureType.DEVICE_REFUSED,
    message: expect.stringMatching(/hosts\/h9.*--moved-disk DISK-1/),
  });
  expect(host.record.devicePlan).toEqual([]);
  expect(host.record.certified).toEqual([]);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('a disk seen elsewhere between erasing and the last look leaves the host unclean', () => {
  const host = looking(HostGoal.AVAILABLE);
  host.report(inspected());
  host.report(inspected());
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  expect(stepAt(host)).toBe('runner.inspectAgain');
  said(host, ['DISK-1', 'hosts/h9']);
  host.report(inspected());
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('the failure that names a disk elsewhere tells of that disk, and of no other one', () => {
  const host = looking(HostGoal.AVAILABLE);
  host.report(inspected());
  said(host, ['DISK-1', 'hosts/h9']);
  host.report(inspected());
  const failure = statusOf(host).lastError?.failure;
  if (failure?.details === undefined) throw new Error('the failure names no disk');
  expect(disksNamedBy(failure.details)).toMatchObject([{ device: 'DISK-1', host: 'hosts/h9' }]);
  // The failure still tells of its disk, in whatever words.
  failure.message = 'one problem';
  failure.detail = '';
  expect(toldOf(host)).not.toContain('is known as attached');
  // The same disk of another host, and another disk, are each told beside the failure.
  const [seen] = host.record.disksElsewhere;
  if (seen === undefined) throw new Error('no disk elsewhere');
  seen.host = 'hosts/h8';
  expect(toldOf(host)).toContain('disk DISK-1 is known as attached to hosts/h8');
  Object.assign(seen, { device: 'DISK-10', host: 'hosts/h9' });
  expect(toldOf(host)).toContain('disk DISK-10 is known as attached to hosts/h9');
});

test('the details of a failure name each disk that its message has room for', () => {
  const disk = (device: string) => create(DiskElsewhereSchema, { device, host: 'hosts/h9' });
  const long = { text: 'x'.repeat(1_100) };
  const [first, last] = [disk('DISK-1'), disk('DISK-2')];
  const failure = failureOf([{ text: 'short', disk: first }, long, { text: 'cut', disk: last }]);
  expect(disksNamedBy(failure?.details)).toEqual([first]);
});

test('a disk elsewhere is this host’s once a person vouches for it', () => {
  const host = looking();
  const spec = host.record.host?.spec ?? create(HostSpecSchema);
  const cleaning = create(CleaningPolicySchema, { movedDisks: ['disk-1'] });
  host.request({ kind: 'update', spec: { ...spec, cleaning }, labels: {} });
  said(host, ['DISK-1', 'hosts/h9']);
  host.report(inspected());
  expect(faults(host)).toEqual([]);
  host.report(done);
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  host.report(inspected());
  expect(stepAt(host)).toBe('deploy.erase_devices');
});
