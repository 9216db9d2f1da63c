/** A plan's text for each disk of a deployment matches what the runner then does. */
import { create } from '@bufbuild/protobuf';
import { chooseTarget } from '@rackwright/disk-image';
import { decideScope, deviceFactsOf } from '@rackwright/erasure';
import {
  type DeploySpec,
  DeploySpecSchema,
  DeviceFate,
  HostGoal,
  HostState,
  PlanRunRequestSchema,
  type RootDiskHints,
  RootDiskHintsSchema,
  StorageDeviceSchema,
  StorageRegionSchema,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass } from '../pass/pass.ts';
import { bench, inspected, nvmeDisk, verified, virtioDisk } from '../testing/bench.ts';
import { isWrittenOver, staysAsItIs } from './fate.ts';
import { planNow } from './plan-check.ts';

const image = `registry.example/os@sha256:${'1'.repeat(64)}`;
const disk = create(StorageDeviceSchema, { ...virtioDisk, wwn: 'naa.5000C500A1' });
const twoSpaces = create(StorageDeviceSchema, {
  ...nvmeDisk,
  regions: [...nvmeDisk.regions, create(StorageRegionSchema, { name: 'nvme0n2' })],
});

function planned(
  devices: (typeof virtioDisk)[],
  hints: RootDiskHints | undefined,
  deploy: DeploySpec,
) {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { spec, status } = host.record.host ?? {};
  if (spec === undefined || status === undefined) throw new Error('a host has both');
  Object.assign(status, { state: HostState.PROVISIONED, image, poweredOn: true });
  if (hints !== undefined) spec.rootDisk = hints;
  host.request({ kind: 'claim', reason: 'mine' });
  const told = inspected(devices);
  const inventory = told.case === 'complete' ? told.value.observations?.inventory : undefined;
  if (inventory === undefined) throw new Error('an inspection brings an inventory');
  const facts = create(store.HostFactsSchema, { ...host.snapshot.facts, inventory });
  host.snapshot = { ...host.snapshot, facts };
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const asked = create(PlanRunRequestSchema, {
    parent: 'hosts/h1',
    run: { case: 'provision', value: { image, deploy } },
  });
  const draft = planNow(pass, { kind: 'reimage', image, deploy }, asked);
  if ('code' in draft) throw new Error(draft.message);
  return draft.plan;
}

const sets = { one: [disk], two: [disk, nvmeDisk], spaces: [twoSpaces], none: [] };
const hints = {
  no: {},
  serial: { serial: 'DISK-1' },
  nvme: { serial: 'NVME-1' },
  size: { minSizeBytes: 1n },
};
const keeps = {
  no: [],
  disk: ['DISK-1'],
  otherwise: ['disk-1'],
  wwn: ['0x5000c500a1'],
  nvme: ['NVME-1'],
  both: ['DISK-1', 'NVME-1'],
  strange: ['of another host'],
};
const cases = Object.entries(sets).flatMap(([set, devices]) =>
  Object.entries(hints).flatMap(([hint, given]) =>
    Object.entries(keeps).map(
      ([keep, keepDisks]) => [set, hint, keep, devices, given, keepDisks] as const,
    ),
  ),
);

test.each(cases)(
  'the plan says what the runner does with %s disk, hints %s and %s kept',
  (...row) => {
    const [, , , devices, given, keepDisks] = row;
    const rootDisk =
      Object.keys(given).length === 0 ? undefined : create(RootDiskHintsSchema, { ...given });
    const deploy = create(DeploySpecSchema, { keepDisks: [...keepDisks] });
    const { devices: told, notes } = planned([...devices], rootDisk, deploy);
    const chosen = chooseTarget(decideScope(devices.map(deviceFactsOf)), rootDisk, keepDisks);
    const writes = chosen.kind === 'disk' ? [chosen.device.serial] : [];
    expect(told.filter(isWrittenOver).map(({ serial }) => serial)).toEqual(writes);
    const fails = notes.filter((note) => note.startsWith('the run would fail: '));
    expect(fails.length).toBe(chosen.kind === 'disk' ? 0 : 1);
    // A disk is reported to stay only where every such run leaves it.
    const stays = told.filter(staysAsItIs).map(({ serial }) => serial);
    expect(stays.filter((serial) => writes.includes(serial))).toEqual([]);
    if (chosen.kind === 'disk') expect([...stays, ...writes].length).toBe(told.length);
    if (keepDisks.length === 0 && chosen.kind === 'refused') expect(stays).toEqual([]);
  },
);

test('the plan notes an entry of keep_disks that matches no disk', () => {
  const deploy = create(DeploySpecSchema, { keepDisks: ['naa.5000c500a1', 'DISK-l'] });
  const { notes } = planned([disk, nvmeDisk], undefined, deploy);
  expect(notes).toContain('keep_disks names DISK-l, which no disk of the host has: it keeps none');
});

test('a disk that is kept takes itself out of the choice, in the plan as in the run', () => {
  const deploy = create(DeploySpecSchema, { keepDisks: ['disk-1'] });
  const { devices, dataLoss } = planned([disk, nvmeDisk], undefined, deploy);
  const { KEPT, WRITTEN_OVER } = DeviceFate;
  expect(devices).toMatchObject([
    { serial: 'DISK-1', deviceFate: KEPT, fate: 'kept: keep_disks names it' },
    { serial: 'NVME-1', deviceFate: WRITTEN_OVER, fate: 'written over by deploy.write_image' },
  ]);
  expect(dataLoss).toEqual(['disk NVME-1 (67.1 MB): all that is on it']);
});
