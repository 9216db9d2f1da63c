/** Plans on the bench: the prediction matches the execution, and only that is started. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  BmcIdentitySchema,
  DeletionMode,
  DeviceFate,
  FailureType,
  HostGoal,
  HostState,
  InventorySchema,
  PlanRunRequestSchema,
  type Run,
  RunKind,
  StorageDeviceSchema,
  store,
  Transport,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { beginPass } from '../pass/pass.ts';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  erased,
  inspected,
  nvmeDisk,
  uuid,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import type { PlannableRequest } from './foresee.ts';
import type { DraftPlan } from './plan-basis.ts';
import { planNow } from './plan-check.ts';

const asked = create(PlanRunRequestSchema, {
  parent: 'hosts/h1',
  run: { case: 'clean', value: {} },
});
const clean: PlannableRequest = { kind: 'clean', steps: [] };

function drafted(host: Bench, request: PlannableRequest = clean): DraftPlan {
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const draft = planNow(pass, request, asked);
  if ('code' in draft) throw new Error(draft.message);
  return draft;
}

const kept = (draft: DraftPlan) => create(store.PlanRecordSchema, draft);

/** Verified and inspected, and at its goal. */
function looked(devices = [virtioDisk]): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  look(host, devices);
  return host;
}

function look(host: Bench, devices = [virtioDisk]): void {
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(inspected(devices));
  host.report(done);
}

const runOf = (host: Bench): Run => {
  const run = host.record.host?.status?.run;
  if (run === undefined) throw new Error('no run');
  return run;
};

test('the steps of a plan are those that the run then has', () => {
  const host = looked();
  const draft = drafted(host);
  host.request({ ...clean, plan: { record: kept(draft), reason: 'tried out' } });
  expect(runOf(host).steps.map(({ name }) => name)).toEqual(
    draft.plan.steps.map(({ step }) => step),
  );
  expect(runOf(host)).toMatchObject({ kind: RunKind.CLEAN, planHash: draft.plan.hash });
  const cause = `started by plan ${draft.plan.hash.slice(0, 12)}: tried out`;
  expect(host.record.change?.cause).toContain(cause);
});

test('a plan names each disk, what happens to it, and what is lost', () => {
  const remote = create(StorageDeviceSchema, {
    ...virtioDisk,
    serial: 'R-1',
    transport: Transport.ISCSI,
  });
  const { plan } = drafted(looked([virtioDisk, remote]));
  expect(plan.devices).toMatchObject([
    { serial: 'DISK-1', deviceFate: DeviceFate.ERASED, fate: 'erase: discard' },
    {
      serial: 'R-1',
      deviceFate: DeviceFate.LEFT_ALONE,
      fate: expect.stringMatching(/^left alone: remote \(iSCSI\)/),
    },
  ]);
  expect(plan.dataLoss).toEqual(['disk DISK-1 (67.1 MB): all that is on it']);
});

test('memory that a kernel counts otherwise is the same, a module less is not', () => {
  const host = looked();
  const remember = (memoryBytes: bigint) => {
    const facts = clone(store.HostFactsSchema, host.snapshot.facts);
    if (facts.inventory !== undefined) facts.inventory.memoryBytes = memoryBytes;
    host.snapshot = { ...host.snapshot, facts };
    return drafted(host);
  };
  const gib = 1024n ** 3n;
  const before = remember(503n * gib);
  expect(remember(503n * gib - 200_000_000n).plan.hash).toBe(before.plan.hash);
  expect(remember(440n * gib).plan.hash).not.toBe(before.plan.hash);
  expect(() => host.request({ ...clean, plan: { record: kept(before), reason: '' } })).toThrow(
    'its memory was 550 GB',
  );
});

test('looked at again, the same host has the same plan, whatever its disks are called now', () => {
  const host = looked([virtioDisk, nvmeDisk]);
  const before = drafted(host);
  host.nowMs += 3_600_000;
  const renamed = clone(StorageDeviceSchema, virtioDisk);
  renamed.device = 'vdb';
  const optical = { ...virtioDisk, serial: '', device: 'sr0', transport: Transport.OPTICAL };
  look(host, [nvmeDisk, renamed, create(StorageDeviceSchema, optical)]);
  const facts = clone(store.HostFactsSchema, host.snapshot.facts);
  if (facts.inventory === undefined) throw new Error('no inventory');
  facts.inventory.collectedAt = timestampFromMs(host.nowMs);
  facts.inventory.runnerSession = 'another';
  host.snapshot = { ...host.snapshot, facts };
  expect(drafted(host).plan.hash).toBe(before.plan.hash);
});

/** One difference since the plan was made, and its text. */
const changes: Readonly<Record<string, [(host: Bench) => void, string]>> = {
  'another disk': [
    (host) => look(host, [create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-2' })]),
    'disk DISK-1 (67.1 MB) is gone; disk DISK-2 (67.1 MB) is new',
  ],
  'a larger disk': [
    (host) => look(host, [create(StorageDeviceSchema, { ...virtioDisk, sizeBytes: 10n ** 9n })]),
    'disk DISK-1 (1.0 GB) had 67.1 MB',
  ],
  'a disk with new firmware': [
    (host) => look(host, [create(StorageDeviceSchema, { ...virtioDisk, firmware: '2.0' })]),
    'disk DISK-1 (67.1 MB) had firmware unknown, now 2.0',
  ],
  'another network card': [
    (host) => {
      const facts = clone(store.HostFactsSchema, host.snapshot.facts);
      facts.inventory = clone(InventorySchema, facts.inventory ?? create(InventorySchema));
      facts.inventory.interfaces = [
        {
          $typeName: 'rackwright.v1.NetworkInterface',
          name: 'a',
          mac: '52:54:00:00:00:09',
          speedMbps: 1,
          linkUp: true,
          neighbors: [],
          listenedSeconds: 0,
        },
      ];
      host.snapshot = { ...host.snapshot, facts };
    },
    'network card 52:54:00:00:00:09 is new',
  ],
  'another policy': [
    (host) => {
      const spec = host.record.host?.spec;
      if (spec === undefined) throw new Error('no spec');
      const cleaning = {
        priorityOverrides: { 'deploy.erase_devices': 0, 'deploy.erase_devices_metadata': 1 },
      };
      Object.assign(spec, bench({ cleaning }).record.host?.spec, { goal: spec.goal });
    },
    'its cleaning policy has changed',
  ],
  'another state': [
    (host) => {
      if (host.record.host?.status) host.record.host.status.state = HostState.PROVISIONED;
    },
    'its state was manageable and is provisioned',
  ],
};

test.each(Object.entries(changes))('%s makes a plan void, and is told', (_name, [act, text]) => {
  const host = looked();
  const plan = kept(drafted(host));
  act(host);
  const before = host.record;
  expect(() => host.request({ ...clean, plan: { record: plan, reason: '' } })).toThrow(
    `the plan does not hold any more: ${text}`,
  );
  expect(host.record).toBe(before);
});

test('a plan that holds but whose host is busy is refused as any request', () => {
  const host = looked();
  host.request({ kind: 'inspect' });
  expect(() =>
    host.request({ ...clean, plan: { record: kept(drafted(host)), reason: '' } }),
  ).toThrow('busy: inspect');
});

test('a run by plan that meets another disk than the plan names erases nothing', () => {
  const host = looked();
  host.request({ ...clean, plan: { record: kept(drafted(host)), reason: '' } });
  driveToInspect(host);
  const other = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-9' });
  host.report(inspected([other]));
  expect(host.record.host?.status?.lastError?.failure).toMatchObject({
    type: FailureType.PLAN_CHANGED,
  });
  expect(host.record.devicePlan).toEqual([]);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.unblock.join()).toContain('rackwright host plan clean h1');
  host.request({ kind: 'resume', reason: '' });
  host.report(inspected([other]));
  expect(host.record.devicePlan, 'gone on with, it is still that plan').toEqual([]);
  host.request(clean);
  driveToInspect(host);
  host.report(inspected([other]));
  expect(host.record.devicePlan.map(({ device }) => device?.serial)).toEqual(['DISK-9']);
});

test('a run by plan that finds its disks erases them', () => {
  const host = looked();
  host.request({ ...clean, plan: { record: kept(drafted(host)), reason: '' } });
  driveToInspect(host);
  host.report(inspected());
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  expect(runOf(host).error).toBeUndefined();
});

test('the plan of a deletion says each run on the way, as a deletion then goes', () => {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  const request = { kind: 'delete', mode: DeletionMode.NORMAL, reason: '' } as const;
  const { plan } = drafted(host, request);
  expect(plan.stages).toEqual([
    'release: os:1 stops, the host is switched off',
    'clean: the host is erased and switched off',
    'delete: the agent forgets it, its record goes',
  ]);
  expect(plan.dataLoss).toHaveLength(1);
  const steps: string[] = [];
  host.request(request);
  for (let pass = 0; pass < 40 && !host.removed; pass++) {
    const run = runOf(host);
    const step = run.steps[run.currentStep];
    const name = `${run.number}/${run.currentStep}/${step?.name}`;
    if (!steps.includes(name)) steps.push(name);
    succeed(host, step?.name ?? '');
  }
  expect(host.removed).toBe(true);
  expect(plan.steps.map(({ step }) => step)).toEqual(steps.map((name) => name.split('/')[2]));
});

/** Drives a deletion until its clean has seen these disks. */
function driveToErasure(host: Bench, devices: Parameters<typeof inspected>[0]): void {
  for (let pass = 0; pass < 20; pass++) {
    const run = runOf(host);
    const step = run.steps[run.currentStep]?.name ?? '';
    if (run.kind === RunKind.CLEAN && step.startsWith('runner.inspect')) {
      host.report(inspected(devices));
      return;
    }
    succeed(host, step);
  }
  throw new Error('no clean on the way');
}

test('a deletion by plan erases the disks that the plan names, and no others', () => {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  const request = { kind: 'delete', mode: DeletionMode.NORMAL, reason: '' } as const;
  host.request({ ...request, plan: { record: kept(drafted(host, request)), reason: '' } });
  const other = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-9' });
  driveToErasure(host, [other]);
  expect(host.record.devicePlan).toEqual([]);
  expect(host.record.host?.status?.lastError?.failure?.message).toContain(
    'nothing was erased: disk DISK-1 of the plan is not there to be erased; disk DISK-9 is not',
  );
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.unblock.join()).toContain('rackwright host plan delete h1');
  expect(told.unblock.join()).toContain('rackwright host cancel-delete h1');
  // A retry follows the same plan, until the right disk is back.
  host.request({ kind: 'retry' });
  driveToErasure(host, [other]);
  expect(host.record.devicePlan).toEqual([]);
  host.request({ kind: 'retry' });
  driveToErasure(host, [virtioDisk]);
  expect(host.record.devicePlan.map(({ device }) => device?.serial)).toEqual([virtioDisk.serial]);
});

/** Provisioned, and its normal deletion is at a clean that waits for its runner. */
function deletedToItsClean(): Bench {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  host.request(deletion);
  for (let pass = 0; pass < 20; pass++) {
    const run = runOf(host);
    const step = run.steps[run.currentStep]?.name ?? '';
    if (run.kind === RunKind.CLEAN && step.startsWith('runner.inspect')) return host;
    succeed(host, step);
  }
  throw new Error('no clean on the way');
}

const deletion = { kind: 'delete', mode: DeletionMode.NORMAL, reason: '' } as const;

test('a plan is refused while a clean of the deletion runs that does not follow it', () => {
  const host = deletedToItsClean();
  const plan = kept(drafted(host, deletion));
  const before = host.record;
  expect(() => host.request({ ...deletion, plan: { record: plan, reason: '' } })).toThrow(
    'of the deletion is under way and does not follow this plan; take the deletion back first ' +
      '(rackwright host cancel-delete h1)',
  );
  expect(host.record).toBe(before);
  host.request({ kind: 'cancelDelete', reason: 'by plan instead' });
  host.report(done);
  expect(host.record.devicePlan).toEqual([]);
  host.request({ ...deletion, plan: { record: kept(drafted(host, deletion)), reason: '' } });
  const other = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-9' });
  driveToErasure(host, [other]);
  expect(host.record.devicePlan).toEqual([]);
});

test('a deletion restarted by the plan that its clean follows changes nothing', () => {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  host.request({ ...deletion, plan: { record: kept(drafted(host, deletion)), reason: '' } });
  while (runOf(host).kind !== RunKind.CLEAN) {
    succeed(host, runOf(host).steps[runOf(host).currentStep]?.name ?? '');
  }
  const run = runOf(host);
  host.request({ ...deletion, plan: { record: kept(drafted(host, deletion)), reason: '' } });
  expect(runOf(host)).toEqual(run);
});

test('a deletion whose plan failed goes on at once by another one', () => {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  host.request({ ...deletion, plan: { record: kept(drafted(host, deletion)), reason: '' } });
  const other = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-9' });
  driveToErasure(host, [other]);
  const failed = runOf(host).number;
  expect(host.record.host?.status?.backoff).toBeDefined();
  host.request({ ...deletion, plan: { record: kept(drafted(host, deletion)), reason: '' } });
  expect(runOf(host).number).toBe(failed + 1n);
  driveToErasure(host, [other]);
  expect(host.record.devicePlan.map(({ device }) => device?.serial)).toEqual(['DISK-9']);
});

test('a deletion that was taken back and asked for again is bound to no plan', () => {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  const request = { kind: 'delete', mode: DeletionMode.NORMAL, reason: '' } as const;
  host.request({ ...request, plan: { record: kept(drafted(host, request)), reason: '' } });
  const other = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-9' });
  driveToErasure(host, [other]);
  host.request({ kind: 'cancelDelete', reason: 'other disks' });
  expect(host.record.plannedDeletion).toBeUndefined();
  host.request(request);
  driveToErasure(host, [other]);
  expect(host.record.devicePlan.map(({ device }) => device?.serial)).toEqual(['DISK-9']);
});

function succeed(host: Bench, step: string): void {
  if (host.record.forgetting) host.apply({ kind: 'forgotten' });
  else if (step === 'runner.await') host.runnerReady();
  else if (step.startsWith('runner.inspect')) host.report(inspected());
  else if (step === 'deploy.erase_devices') {
    const evidence = host.evidence([erased(virtioDisk)]);
    host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  } else host.report(done);
}

test('the plan of a forced deletion says what is left, and who is fenced off', () => {
  const host = looked();
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('no status');
  Object.assign(status, { state: HostState.PROVISIONED, image: 'os:1', poweredOn: true });
  status.bmcIdentity = create(BmcIdentitySchema, { guid: uuid });
  const { plan } = drafted(host, { kind: 'delete', mode: DeletionMode.FORCE, reason: '' });
  expect(plan.stages).toEqual([
    'delete: the host is switched off, the agent forgets it, its record goes',
  ]);
  expect(plan.dataLoss).toEqual([]);
  expect(plan.notes.join('\n')).toContain('left behind: data: the host ran an image');
  expect(plan.notes.join('\n')).toContain('fenced off until the agent of racks/r1');
  expect(plan.devices).toMatchObject([{ deviceFate: DeviceFate.KEPT, fate: 'kept' }]);
});

test('a host that nobody has inspected is planned with what is not known yet', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { plan } = drafted(host);
  expect(plan.devices).toEqual([]);
  expect(plan.dataLoss).toEqual([expect.stringMatching(/every disk/)]);
  expect(plan.notes.join('\n')).toContain('never been inspected');
});
