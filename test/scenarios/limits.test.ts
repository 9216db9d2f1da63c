/** Limits: who is above one waits in a queue, shows its position, and can always be deleted. */
import { clone, create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { bench, done, failed } from '@rackwright/controlplane/testing';
import {
  type HostId,
  HostState,
  RackSchema,
  RunKind,
  RunPhase,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Replica, Site, verifiedAs } from './replica.ts';

const by = { actor: userActor('test') };

function rack(site: Site): wire.RackRecord {
  const change = site.disk.changesOf('racks.r1').at(-1);
  if (change?.kind !== 'put') throw new Error('there is no rack');
  return fromBinary(wire.RackRecordSchema, change.value);
}

/** Undefined takes the limit away. */
async function setLimit(site: Site, runs: number | undefined): Promise<void> {
  const record = clone(wire.RackRecordSchema, rack(site));
  const spec = runs === undefined ? {} : { limits: { runs } };
  record.rack = create(RackSchema, { name: 'racks/r1', spec });
  await site.put('racks.r1', toBinary(wire.RackRecordSchema, record));
  await site.run(100);
}

/** Hosts that are verified in a rack with that limit: each wants to be inspected. */
async function wanting(hosts: number, runs: number) {
  const site = await Site.open({ hosts });
  await setLimit(site, runs);
  const replica = await Replica.start(site, 'a');
  await replica.hello();
  await site.run(1_000);
  for (const verify of replica.operations())
    await replica.report(verify, verifiedAs(verify.hostUid));
  await site.run(1_000);
  return { site, replica };
}

const waiting = (site: Site, hostId: HostId) => site.record(hostId)?.host?.status?.run?.waiting;
const reasons = (site: Site) => site.hostIds().map((hostId) => waiting(site, hostId)?.reason);

function place({ hosts }: Replica, site: Site, hostId: HostId): number | undefined {
  const record = site.record(hostId);
  return record === undefined ? undefined : hosts.queuePosition(record);
}

test('metal3-1: a host that is registered waits for a slot before it is inspected', async () => {
  const { site, replica } = await wanting(2, 1);
  expect(reasons(site)).toEqual([undefined, 'capacity']);
  const status = site.record('h2')?.host?.status;
  expect(status?.state).toBe(HostState.MANAGEABLE);
  expect(status?.run).toMatchObject({ kind: RunKind.INSPECT, phase: RunPhase.WAITING });
  expect(place(replica, site, 'h2')).toBe(1);
  expect(waiting(site, 'h2')?.message).toContain('racks/r1 lets 1 host be in the runner');
  const explained = await replica.hosts.explain('h2');
  expect(explained).toMatchObject({ blocker: 'the limit of runs', causes: [expect.anything()] });
  expect(explained?.unblock.join('\n')).toContain('rackwright rack update r1 --runs N');
});

test('metal3-5: an available host that is to have an image and no slot waits', () => {
  const host = bench();
  const status = host.record.host?.status;
  if (status === undefined) throw new Error('the host has no status');
  Object.assign(status, { state: HostState.AVAILABLE, dirty: false });
  const quotaViews = [
    { name: 'runner', quota: { kind: 'atOnce', hosts: 1 }, own: [], nextSlotMs: undefined },
  ] as const;
  host.snapshot = { ...host.snapshot, quotaViews };
  host.request({ kind: 'provision', image: `registry.example/linux@sha256:${'1'.repeat(64)}` });
  expect(host.operation().kind.case).toBe('runStep');
  // The image may come; nothing is done to the host.
  expect(host.report(done).filter(({ kind }) => kind !== 'answer')).toEqual([
    {
      kind: 'quota',
      name: 'runner',
      change: { kind: 'take', owner: { hostUid: 'u1', run: host.record.runCount } },
    },
  ]);
  const after = host.record.host?.status;
  expect(after).toMatchObject({ state: HostState.AVAILABLE, run: { currentStep: 1 } });
  expect(after?.run?.waiting?.reason).toBe('capacity');
});

test('metal3-7: a slot that becomes free lets the next one go on at once', async () => {
  const { site, replica } = await wanting(3, 1);
  await replica.hosts.request('h1', { kind: 'delete', reason: 'sold' }, by);
  await site.run(1_000);
  const power = replica
    .operations()
    .find(({ hostUid, kind }) => hostUid === 'u1' && kind.case === 'setPower');
  if (power === undefined) throw new Error('nothing was ordered for h1');
  await replica.report(power, failed('cancelled'));
  await site.run(1_000);
  expect(reasons(site).slice(1)).toEqual([undefined, 'capacity']);
  expect(replica.operations().at(-1)?.hostUid).toBe('u2');
  expect(place(replica, site, 'h3')).toBe(1);
});

test('metal3-73: at the limit no, below it yes, and nobody is counted twice', async () => {
  const { site } = await wanting(3, 2);
  expect(reasons(site)).toEqual([undefined, undefined, 'capacity']);
  const held = rack(site).running.map(({ hostUid }) => hostUid);
  expect(held).toEqual(['u1', 'u2']);
  await site.run(120_000);
  expect(rack(site).running.map(({ hostUid }) => hostUid)).toEqual(held);
  await setLimit(site, 3);
  expect(reasons(site)).toEqual([undefined, undefined, undefined]);
  await setLimit(site, undefined);
  expect(reasons(site)).toEqual([undefined, undefined, undefined]);
});

test('metal3-53: a host that waits for capacity is deleted at once', async () => {
  const { site, replica } = await wanting(2, 1);
  await replica.hosts.request('h2', { kind: 'delete', reason: 'sold' }, by);
  await site.run(1_000);
  expect(site.record('h2')?.forgetting).toBe(true);
  await replica.forgotten('u2');
  await site.run(1_000);
  expect(site.record('h2')).toBeUndefined();
  expect(rack(site).queued).toEqual([]);
});

test('ironic-49: whatever is asked for queues with its position, but no release', async () => {
  const { site, replica } = await wanting(4, 1);
  const places = ['h2', 'h3', 'h4'].map((hostId) => place(replica, site, hostId));
  expect(places).toEqual([1, 2, 3]);
  await replica.hosts.request('h2', { kind: 'abort', reason: 'a clean instead' }, by);
  await replica.hosts.request('h2', { kind: 'clean', steps: [] }, by);
  await site.run(1_000);
  expect(site.record('h2')?.host?.status?.run?.kind).toBe(RunKind.CLEAN);
  expect(place(replica, site, 'h2')).toBe(3);
  const record = site.record('h4');
  const status = record?.host?.status;
  if (record === undefined || status === undefined) throw new Error('h4 is gone');
  await replica.hosts.request('h4', { kind: 'abort', reason: 'it runs an image' }, by);
  await site.run(1_000);
  const provisioned = site.record('h4');
  if (provisioned?.host?.status === undefined) throw new Error('h4 is gone');
  provisioned.host.status.state = HostState.PROVISIONED;
  await site.putRecord('h4', provisioned);
  await replica.hosts.request('h4', { kind: 'release', reason: 'over' }, by);
  await site.run(1_000);
  const release = site.record('h4')?.host?.status?.run;
  expect(release).toMatchObject({ kind: RunKind.RELEASE, phase: RunPhase.RUNNING });
});
