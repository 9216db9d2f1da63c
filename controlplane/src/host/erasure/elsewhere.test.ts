/**
 * A disk that another host is known to have: reported, and neither erased, written nor certified.
 */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  CleaningPolicySchema,
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

function said(host: Bench, ...disks: [device: string, host: string][]): void {
  host.context = { ...host.context, disksElsewhere: new Map(disks) };
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
  const told = explainHost(host.record, { ...host.context, nowMs: host.nowMs });
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
