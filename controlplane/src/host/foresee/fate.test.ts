/** The type of a fate decides what a plan permits and protects; its text decides nothing. */
import { clone, create } from '@bufbuild/protobuf';
import { decideScope, deviceFactsOf, type ErasureMethod } from '@rackwright/erasure';
import {
  CleaningMethod,
  CleaningPolicySchema,
  DeploySpecSchema,
  DeviceFate,
  DeviceFateSchema,
  FailureType,
  HostGoal,
  type PlannedDevice,
  PlannedDeviceSchema,
  PlanRunRequestSchema,
  RunKind,
  RunStepSchema,
  StepState,
  StorageDeviceSchema,
  store,
  Transport,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { scopePolicy } from '../erasure/policy.ts';
import { beginPass } from '../pass/pass.ts';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  inspected,
  nvmeDisk,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { fateOf } from './deployment.ts';
import { foreseeDevices, lossOf } from './devices.ts';
import { erasedBy, isErased, isLeftAlone, isWrittenOver, lossBy, staysAsItIs } from './fate.ts';
import { foresee, type PlannableRequest } from './foresee.ts';
import { type DraftPlan, draftHostPlan } from './plan-basis.ts';

const everything = 'all that is on it';
const partitions = 'its partitions; the data stays readable to tools';

interface Row {
  readonly does?: 'erased' | 'writtenOver' | 'leftAlone';
  readonly stays?: true;
  readonly loss?: string;
}

/** Without a row for each fate, this does not compile. */
const rows: Readonly<Record<DeviceFate, Row>> = {
  [DeviceFate.UNSPECIFIED]: { loss: everything },
  [DeviceFate.ERASED]: { does: 'erased', loss: everything },
  [DeviceFate.METADATA_ERASED]: { does: 'erased', loss: partitions },
  [DeviceFate.WRITTEN_OVER]: { does: 'writtenOver', loss: everything },
  [DeviceFate.MAY_BE_WRITTEN]: {},
  [DeviceFate.KEPT]: { stays: true },
  [DeviceFate.LEFT_ALONE]: { does: 'leftAlone', stays: true },
  [DeviceFate.NOT_ERASABLE]: {},
  [DeviceFate.NOT_CHOSEN]: {},
};

/** Texts that named other fates, and none at all. */
const texts = [
  '',
  'kept',
  'kept: why',
  'erase: overwrite',
  'left alone: why',
  'written over by it',
];

const newerFate = 99 as DeviceFate;
const fates = [...DeviceFateSchema.values.map(({ number }) => number as DeviceFate), newerFate];

test.each(fates)('fate %s means the same with every text', (deviceFate) => {
  const row = rows[deviceFate] ?? rows[DeviceFate.UNSPECIFIED];
  for (const fate of texts) {
    const device = create(PlannedDeviceSchema, { deviceFate, fate });
    expect(isErased(device)).toBe(row?.does === 'erased');
    expect(isWrittenOver(device)).toBe(row?.does === 'writtenOver');
    expect(isLeftAlone(device)).toBe(row?.does === 'leftAlone');
    expect(staysAsItIs(device)).toBe(row?.stays === true);
    expect(lossBy(device)).toBe(row?.loss);
    const lines = row?.loss === undefined ? [] : [expect.stringContaining(row.loss)];
    expect(lossOf([device], [])).toEqual(lines);
  }
});

const methods: Readonly<Record<Exclude<ErasureMethod, 'metadataOnly'>, CleaningMethod>> = {
  nvmeFormatCrypto: CleaningMethod.NVME_FORMAT_CRYPTO,
  nvmeFormat: CleaningMethod.NVME_FORMAT,
  discard: CleaningMethod.DISCARD,
  overwrite: CleaningMethod.OVERWRITE,
  sanitizeCrypto: CleaningMethod.SANITIZE_CRYPTO,
  sanitizeBlock: CleaningMethod.SANITIZE_BLOCK,
  sanitizeOverwrite: CleaningMethod.SANITIZE_OVERWRITE,
  ataSecurityErase: CleaningMethod.ATA_SECURE_ERASE,
  ataEnhancedErase: CleaningMethod.ATA_ENHANCED_ERASE,
};

test.each(Object.keys(methods) as (keyof typeof methods)[])(
  'the fate of a disk erased by %s names the method as a policy asks for it',
  (name) => {
    for (const certifiedAs of ['disk', 'volume'] as const) {
      const { deviceFate, method } = erasedBy({ method: name, certifiedAs });
      expect([deviceFate, method]).toEqual([DeviceFate.ERASED, methods[name]]);
    }
    const policy = create(CleaningPolicySchema, { method: methods[name] });
    expect(scopePolicy(policy).method).toBe(name);
  },
);

test.each(['disk', 'volume'] as const)('the data of a %s outlives its metadata', (certifiedAs) => {
  const { deviceFate, method, fate } = erasedBy({ method: 'metadataOnly', certifiedAs });
  expect([deviceFate, method]).toEqual([DeviceFate.METADATA_ERASED, undefined]);
  expect(lossBy({ deviceFate })).toBe(partitions);
  expect(fate).toContain('metadata only');
});

test('the fate of a disk at a deployment follows from the disk that is chosen', () => {
  const [first, second] = decideScope([virtioDisk, nvmeDisk].map(deviceFactsOf));
  if (first === undefined || second === undefined) throw new Error('two disks are decided');
  const deploy = create(DeploySpecSchema);
  const root = { kind: 'disk', device: first.device } as const;
  const fate = (...[device, foreseen, spec]: Parameters<typeof fateOf>) =>
    fateOf(device, foreseen, spec).deviceFate;
  const { KEPT, MAY_BE_WRITTEN, NOT_CHOSEN, WRITTEN_OVER } = DeviceFate;
  expect(fate(first.device, root, deploy)).toBe(WRITTEN_OVER);
  expect(fate(second.device, root, deploy)).toBe(KEPT);
  expect(fate(first.device, { kind: 'unknown' }, deploy)).toBe(MAY_BE_WRITTEN);
  expect(fate(first.device, { kind: 'none', problem: 'none fits' }, deploy)).toBe(NOT_CHOSEN);
  const netboot = create(DeploySpecSchema, { netboot: true });
  expect(fate(first.device, root, netboot)).toBe(KEPT);
  const keepDisks = create(DeploySpecSchema, { keepDisks: [virtioDisk.serial] });
  expect(fate(first.device, root, keepDisks)).toBe(KEPT);
});

const asked = create(PlanRunRequestSchema, {
  parent: 'hosts/h1',
  run: { case: 'clean', value: {} },
});
const clean: PlannableRequest = { kind: 'clean', steps: [] };

/** Verified and inspected. */
function looked(devices = [virtioDisk]): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(inspected(devices));
  host.report(done);
  return host;
}

/** The plan of a clean, after `change` of each of its devices. */
function drafted(host: Bench, change?: (device: PlannedDevice) => void): DraftPlan {
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const foresight = foresee(pass, clean);
  if ('code' in foresight) throw new Error(foresight.message);
  const devices = foresight.devices.map((device) => {
    const changed = clone(PlannedDeviceSchema, device);
    change?.(changed);
    return changed;
  });
  return draftHostPlan(pass, asked, '', { ...foresight, devices });
}

test('a clean says of each device by type what it does to it', () => {
  const usb = { ...virtioDisk, serial: 'USB-1', transport: Transport.USB };
  const remote = { ...virtioDisk, serial: 'R-1', transport: Transport.ISCSI };
  const others = [usb, remote].map((each) => create(StorageDeviceSchema, each));
  const { plan } = drafted(looked([virtioDisk, ...others]));
  expect(plan.devices.map(({ serial, deviceFate }) => [serial, deviceFate])).toEqual([
    ['DISK-1', DeviceFate.ERASED],
    ['USB-1', DeviceFate.NOT_ERASABLE],
    ['R-1', DeviceFate.LEFT_ALONE],
  ]);
});

test.each<[string, object, DeviceFate]>([
  ['destroys data', { destructive: true }, DeviceFate.MAY_BE_WRITTEN],
  ['only reads', {}, DeviceFate.KEPT],
  ['is skipped', { destructive: true, state: StepState.SKIPPED }, DeviceFate.KEPT],
])('beside no erasure, a step that %s decides the fate of each disk', (_name, given, fate) => {
  const host = looked();
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const step = create(RunStepSchema, { name: 'run.script', title: 'kept', ...given });
  const devices = foreseeDevices(pass, RunKind.WORKFLOW, [step]);
  expect(devices.map(({ deviceFate }) => deviceFate)).toEqual([fate]);
});

test.each(texts)('a plan holds and binds its run as before with the text “%s”', (fate) => {
  const host = looked();
  const plan = drafted(host, (device) => Object.assign(device, { fate }));
  expect(plan.plan.hash).toBe(drafted(host).plan.hash);
  host.request({ ...clean, plan: { record: create(store.PlanRecordSchema, plan), reason: '' } });
  expect(host.record.plannedErasure?.devices).toEqual(['DISK-1']);
  driveToInspect(host);
  host.report(inspected());
  expect(host.record.devicePlan.map(({ device }) => device?.serial)).toEqual(['DISK-1']);
});

test.each<[string, Partial<PlannedDevice>]>([
  ['fate', { deviceFate: DeviceFate.KEPT }],
  ['method', { method: CleaningMethod.OVERWRITE }],
  ['fate of an older version', { deviceFate: DeviceFate.UNSPECIFIED }],
])('a plan with another %s is another plan, though its text is the same', (_name, change) => {
  const host = looked();
  const plan = drafted(host, (device) => Object.assign(device, change));
  expect(plan.plan.hash).not.toBe(drafted(host).plan.hash);
  const before = host.record;
  const request = { ...clean, plan: { record: create(store.PlanRecordSchema, plan), reason: '' } };
  expect(() => host.request(request)).toThrow('the plan does not hold any more');
  expect(host.record).toBe(before);
});

test.each([DeviceFate.UNSPECIFIED, newerFate])(
  'a plan whose fates are of another version permits no erasure (fate %s)',
  (deviceFate) => {
    const host = looked();
    const kept = create(store.PlanRecordSchema, drafted(host));
    for (const device of kept.plan?.devices ?? []) device.deviceFate = deviceFate;
    host.request({ ...clean, plan: { record: kept, reason: '' } });
    expect(host.record.plannedErasure?.devices).toEqual([]);
    driveToInspect(host);
    host.report(inspected());
    expect(host.record.devicePlan).toEqual([]);
    expect(host.record.host?.status?.lastError?.failure).toMatchObject({
      type: FailureType.PLAN_CHANGED,
      message: 'nothing was erased: disk DISK-1 is not in the plan',
    });
  },
);
