import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  DeploySpecSchema,
  FailureType,
  HostGoal,
  HostState,
  InventorySchema,
  RootDiskHintsSchema,
  RunKind,
  RunPhase,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  type Bench,
  bench,
  done,
  inspected,
  makeAvailable,
  nvmeDisk,
  statusOf,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;
const contentDigest = `sha256:${'c'.repeat(64)}`;

function driveTo(host: Bench, name: string): void {
  const stepAt = () => {
    const { run } = statusOf(host);
    return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
  };
  for (let count = 0; count < 20 && stepAt() !== name; count++) {
    if (stepAt() === 'runner.await') host.runnerReady();
    else host.report(stepAt() === 'runner.inspect' ? inspected() : done);
  }
  expect(stepAt()).toBe(name);
}

function wrote(init: MessageInitShape<typeof agent.WrittenImageSchema>): agent.Report['result'] {
  const observations = { writtenImage: init as object };
  return { case: 'complete', value: create(agent.CompleteSchema, { observations }) };
}

function failed(init: MessageInitShape<typeof agent.FailedSchema>): agent.Report['result'] {
  return { case: 'failed', value: create(agent.FailedSchema, init as object) };
}

/** In service with the first image, and claimed. */
function inService(netboot = false): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  makeAvailable(host);
  const deploy = create(DeploySpecSchema, { netboot });
  host.request({ kind: 'provision', image: first, deploy });
  if (!netboot) {
    driveTo(host, 'deploy.write_image');
    const problem = 'the firmware’s store is full';
    const grown = { grownBytes: 5_000n, notGrown: 'x'.repeat(4_000), bootEntryProblem: problem };
    host.report(wrote({ serial: 'DISK-1', whole: true, contentDigest, ...grown }));
  }
  driveTo(host, 'deploy.await_image');
  host.report(done);
  host.request({ kind: 'claim', reason: 'mine' });
  expect(statusOf(host).state).toBe(HostState.PROVISIONED);
  return host;
}

test('the status names the written disk, its image and what the firmware did with it', () => {
  const host = inService();
  expect(statusOf(host).writtenDisk).toMatchObject({
    ...{ disk: 'DISK-1', whole: true, contentDigest, grownBytes: 5_000n },
    bootEntryProblem: 'the firmware’s store is full',
  });
  expect(statusOf(host).writtenDisk?.notGrown.length).toBeLessThan(600);
});

test('the status names no disk during a write, and the old one if none was written', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  expect(statusOf(host).writtenDisk).toBeUndefined();
  host.report(failed({ type: FailureType.IMAGE_NOT_FOUND, disksUntouched: true }));
  expect(statusOf(host)).toMatchObject({ image: first, writtenDisk: { disk: 'DISK-1' } });
});

test('a write that failed halfway names the disk that is lost', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  const observations = { writtenImage: { wwn: '0x5000c500a1b2c3d4' } };
  host.report(failed({ type: FailureType.IMAGE_DIGEST_MISMATCH, observations }));
  expect(statusOf(host).image).toBe('');
  expect(statusOf(host).writtenDisk).toMatchObject({ disk: '0x5000c500a1b2c3d4', whole: false });
});

test('a failed write without a report of its disk records no written disk', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  host.report(failed({ type: FailureType.WRITE_ERROR }));
  expect(statusOf(host).writtenDisk).toBeUndefined();
});

function askReimage(host: Bench, netboot: boolean): string {
  const deploy = create(DeploySpecSchema, { netboot });
  const request = { kind: 'reimage', image: second, deploy } as const;
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
  return outcome.kind === 'refused' ? outcome.refusal.message : outcome.kind;
}

test('a host whose disk boots comes to netboot only over a release and a clean', () => {
  const told = askReimage(inService(), true);
  expect(told).toContain(`its disk may still boot ${first} whenever the host restarts`);
  expect(told).toContain('release it, let it be cleaned, and provision it with netboot then');
  // Its firmware's netboot is no longer answered: it goes on to the disk.
  expect(askReimage(inService(true), false)).toBe('kept');
  expect(askReimage(inService(true), true)).toBe('kept');
  expect(askReimage(inService(), false)).toBe('kept');
});

function see(host: Bench, devices: (typeof virtioDisk)[]): void {
  const inventory = create(InventorySchema, { devices });
  const facts = create(store.HostFactsSchema, { ...host.snapshot.facts, inventory });
  host.snapshot = { ...host.snapshot, facts };
}

test('a host is not reimaged onto another disk while the one written before may still boot', () => {
  const host = inService();
  const { spec } = host.record.host ?? {};
  if (spec === undefined) throw new Error('a host has a spec');
  see(host, [virtioDisk, nvmeDisk]);
  spec.rootDisk = create(RootDiskHintsSchema, { serial: 'NVME-1' });
  expect(() => host.request({ kind: 'reimage', image: second })).toThrow(
    `its image would come onto disk NVME-1, and disk DISK-1 may still boot ${first}`,
  );
  const deploy = create(DeploySpecSchema, { keepDisks: ['DISK-1'] });
  delete spec.rootDisk;
  expect(() => host.request({ kind: 'reimage', image: second, deploy })).toThrow(
    'onto disk NVME-1',
  );
  spec.rootDisk = create(RootDiskHintsSchema, { serial: 'DISK-1' });
  host.request({ kind: 'reimage', image: second });
  expect(statusOf(host).run?.kind).toBe(RunKind.REIMAGE);
});

test('a disk that is gone, or holds a part of an image, keeps no host from another disk', () => {
  for (const devices of [[nvmeDisk], [virtioDisk, nvmeDisk]]) {
    const host = inService();
    see(host, devices);
    const { spec } = host.record.host ?? {};
    if (spec !== undefined) spec.rootDisk = create(RootDiskHintsSchema, { serial: 'NVME-1' });
    const { writtenDisk } = statusOf(host);
    if (devices.length > 1 && writtenDisk !== undefined) writtenDisk.whole = false;
    host.request({ kind: 'reimage', image: second });
    expect(statusOf(host).run?.kind).toBe(RunKind.REIMAGE);
  }
});
