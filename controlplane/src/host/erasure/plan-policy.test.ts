/** What a plan fixes before the first write: how disks are read back, how long that may take. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { decideScope, deviceFactsOf } from '@rackwright/erasure';
import {
  agent,
  BmcDriveListSchema,
  CleaningMethod,
  CleaningPolicySchema,
  DeletionSchema,
  DeviceHealthSchema,
  FailingDisks,
  FailureType,
  FleetSpecSchema,
  HiddenAreas,
  HostState,
  InventorySchema,
  RaidDrives,
  RunOutcome,
  type StorageDevice,
  StorageDeviceSchema,
  StorageRegionSchema,
  StorageSignKind,
  StorageSignSchema,
  StorageSource,
  Transport,
  UsbDisks,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass } from '../pass/pass.ts';
import {
  type Bench,
  bench,
  driveToErase,
  driveToInspect,
  inspected,
  statusOf,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { decideToWrite, missingDevice, plansOfStep } from './device-plan.ts';
import { gapsOf } from './gaps.ts';
import { scopePolicy } from './policy.ts';

const { FULL, SAMPLED } = agent.VerificationLevel;

/** A disk of so many bytes. */
function disk(
  sizeBytes: number,
  more: Exclude<MessageInitShape<typeof StorageDeviceSchema>, StorageDevice> = {},
) {
  const size = BigInt(sizeBytes);
  const { device, transport, serial, discardSupported } = virtioDisk;
  return create(StorageDeviceSchema, {
    ...{ device, transport, serial, discardSupported, sizeBytes: size },
    regions: [
      create(StorageRegionSchema, { name: 'vda', sizeBytes: size, logicalBlockBytes: 512 }),
    ],
    ...more,
  });
}

function plans(host: Bench): agent.DevicePlan[] {
  const { kind } = host.operation();
  if (kind.case !== 'runStep') throw new Error('a step was to be ordered');
  return kind.value.devices;
}

const large = disk(1e12);

test('a large disk is sampled so that 0.01 % is found with 99 %; the host’s policy decides', () => {
  const host = bench();
  driveToErase(host, [large]);
  expect(plans(host)[0]?.verification).toMatchObject({ level: SAMPLED, places: 46_050n });
  const whole = bench({ cleaning: { verification: { full: true } } });
  driveToErase(whole, [large]);
  expect(plans(whole)[0]?.verification).toMatchObject({ level: FULL });
});

test('the fleet’s policy holds where the host has none', () => {
  const host = bench();
  const fleet = create(FleetSpecSchema, { verification: { sharePpcm: 1_000_000 } });
  host.snapshot = { ...host.snapshot, fleet };
  driveToErase(host, [large]);
  expect(plans(host)[0]?.verification).toMatchObject({ level: SAMPLED, places: 459n });
});

test('a disk that only reports a discard is read again after a delay', () => {
  const host = bench();
  driveToErase(host, [large]);
  const { rereadDelay } = plans(host)[0] ?? {};
  expect(rereadDelay && durationMs(rereadDelay)).toBe(host.snapshot.timing.rereadDelayMs);
  const written = bench();
  driveToErase(written, [disk(1e9, { discardSupported: false })]);
  expect(plans(written)[0]?.rereadDelay).toBeUndefined();
});

test('the deadline of an erasure follows from the size of its disks', () => {
  const host = bench();
  const slow = { discardSupported: false, rotational: true };
  driveToErase(host, [disk(20e12, slow)]);
  const hours = (run: Bench) => {
    const { deadline } =
      statusOf(run).run?.steps.find(({ attempt, name }) => {
        return attempt > 0 && name === 'deploy.erase_devices';
      }) ?? {};
    return deadline === undefined ? 0 : (timestampMs(deadline) - run.nowMs) / 3_600_000;
  };
  // Written and read back at 180 MB/s it takes 62 h.
  expect(hours(host)).toBeGreaterThan(62 * 1.5);
  const small = bench();
  driveToErase(small, [disk(1e9, slow)]);
  expect(hours(small)).toBeLessThan(2);
  const { run } = statusOf(host);
  const ends = run?.deadline === undefined ? 0 : timestampMs(run.deadline);
  expect(ends - host.nowMs, 'the run outlives its steps').toBeGreaterThan(hours(host) * 3_600_000);
});

test('every disk and every sign of storage in the way is named at once, with what fixes it', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  const bad = [
    disk(1e9, { serial: 'RO-1', readOnly: true }),
    disk(1e9, { serial: '', wwn: '' }),
    disk(1e9, {
      serial: 'HPA-1',
      transport: Transport.SATA,
      capacity: { examined: true, nativeBytes: 2_000_000_000n, hostProtectedBytes: 1_000_000_000n },
    }),
  ];
  const look = inspected(bad);
  const inventory = look.case === 'complete' ? look.value.observations?.inventory : undefined;
  const sign = {
    source: StorageSource.BUS,
    kind: StorageSignKind.CONTROLLER_WITHOUT_DRIVER,
    name: '0000:03:00.0',
  };
  inventory?.storageSigns.push(create(StorageSignSchema, sign));
  host.report(look);
  host.report(look);
  const failure = statusOf(host).lastError?.failure;
  expect(failure?.type).toBe(FailureType.DEVICE_REFUSED);
  for (const word of ['RO-1', 'write protection', 'HPA-1', 'hidden_areas', '0000:03:00.0']) {
    expect(failure?.message).toContain(word);
  }
  expect(failure?.message).toMatch(/^4 problems: /);
});

test('a hidden area is removed where the policy says so', () => {
  const hidden = disk(1e9, {
    transport: Transport.SATA,
    capacity: { examined: true, nativeBytes: 2_000_000_000n, hostProtectedBytes: 1_000_000_000n },
  });
  const host = bench({ cleaning: { hiddenAreas: HiddenAreas.REMOVE } });
  driveToErase(host, [hidden]);
  expect(plans(host)[0]?.removeHiddenArea).toBe(true);
  // After the first of them the disk has its native size, which the others must know.
  for (const step of ['deploy.erase_devices', 'deploy.erase_devices_metadata', 'burnin.disk']) {
    expect(plansOfStep(host.record.devicePlan, step), step).toMatchObject([
      { removeHiddenArea: true },
    ]);
  }
});

test('a card that was pulled is missing, although its empty reader is there', () => {
  const card = disk(1e9, { transport: Transport.USB, removable: true });
  const host = bench({ cleaning: { usbDisks: UsbDisks.ERASE } });
  driveToErase(host, [card]);
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const missing = (device: StorageDevice) =>
    missingDevice(pass, create(InventorySchema, { devices: [device] }))?.message;
  expect(missing(card)).toBeUndefined();
  expect(missing({ ...card, regions: [], sizeBytes: 0n })).toMatch(/DISK-1 .*is not there/);
});

test('every disk is erased by the method that the policy asks for, or refused by its name', () => {
  const sanitize = { overwrite: true };
  const offers = disk(1e9, { sanitize });
  const host = bench({ cleaning: { method: CleaningMethod.SANITIZE_OVERWRITE } });
  driveToErase(host, [offers]);
  expect(plans(host)[0]?.method).toBe(agent.ErasureMethod.SANITIZE_OVERWRITE);
  const usual = bench();
  driveToErase(usual, [offers]);
  expect(plans(usual)[0]?.method, 'nobody asked').toBe(agent.ErasureMethod.DISCARD);

  const other = disk(1e9, { serial: 'NO-SANITIZE' });
  const strict = bench({ cleaning: { method: CleaningMethod.SANITIZE_OVERWRITE } });
  strict.apply({ kind: 'tick' });
  strict.report(verified());
  driveToInspect(strict);
  strict.report(inspected([other]));
  strict.report(inspected([other]));
  const failure = statusOf(strict).lastError?.failure;
  expect(failure?.type).toBe(FailureType.DEVICE_REFUSED);
  expect(failure?.message).toMatch(/NO-SANITIZE.*does not offer sanitizeOverwrite/);
});

test('a stick is left alone whose whole content is that of a boot medium of the host', () => {
  const sha256 = 'ab'.repeat(32);
  const bootMedia = [{ sha256, sizeBytes: 1_000_000_000n }];
  const stick = (contentSha256: string) =>
    disk(1e9, { serial: 'USB-1', transport: Transport.USB, contentSha256 });
  const host = bench({ cleaning: { bootMedia } });
  driveToErase(host, [disk(1e9), stick(sha256)]);
  expect(plans(host).map(({ device }) => device?.serial)).toEqual(['DISK-1']);
  const decided = (contentSha256: string) =>
    decideScope(
      [stick(contentSha256)].map(deviceFactsOf),
      scopePolicy(create(CleaningPolicySchema, { bootMedia })),
    );
  expect(decided(sha256)).toMatchObject([{ kind: 'listed', why: 'bootMedium' }]);
  expect(decided('cd'.repeat(32))).toMatchObject([{ kind: 'refused', why: 'usb' }]);
  expect(decided(`${sha256} and more`), 'no digest').toMatchObject([{ kind: 'refused' }]);
});

test('an inspection is told which media to read, and has the time for it', () => {
  const bootMedia = [{ sha256: 'ab'.repeat(32), sizeBytes: 8_000_000_000n }];
  const host = bench({ cleaning: { bootMedia } });
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  expect(host.operation().kind).toMatchObject({ case: 'inspect', value: { bootMedia } });
  const { deadline } =
    statusOf(host).run?.steps.find(({ name }) => name === 'runner.inspect') ?? {};
  const ms = deadline === undefined ? 0 : timestampMs(deadline) - host.nowMs;
  expect(ms).toBe(host.snapshot.timing.operationTimeoutMs + 4 * 1_600_000);
});

test('a card in a USB reader keeps a host from a clean until its policy says whose it is', () => {
  const disks = [disk(1e9), disk(1e9, { serial: 'USB-1', transport: Transport.USB })];
  const unsaid = bench();
  unsaid.apply({ kind: 'tick' });
  unsaid.report(verified());
  driveToInspect(unsaid);
  unsaid.report(inspected(disks));
  unsaid.report(inspected(disks));
  const failure = statusOf(unsaid).lastError?.failure;
  expect(failure?.type).toBe(FailureType.DEVICE_REFUSED);
  expect(failure?.message).toMatch(/USB-1.*set cleaning.usb_disks to erase or to leave/);
  const serials = (usbDisks: UsbDisks) => {
    const host = bench({ cleaning: { usbDisks } });
    driveToErase(host, disks);
    return plans(host).map(({ device }) => device?.serial);
  };
  expect(serials(UsbDisks.LEAVE)).toEqual(['DISK-1']);
  expect(serials(UsbDisks.ERASE)).toEqual(['DISK-1', 'USB-1']);
  const toWrite = decideToWrite(create(InventorySchema, { devices: disks }), undefined);
  expect(
    toWrite.map(({ kind }) => kind),
    'nor is an image written onto it',
  ).toEqual([...['inScope', 'listed']]);
});

test('a drive that only the BMC lists keeps a host from being erased', () => {
  const host = bench();
  const drives = ['DISK-1', 'DISK-2'].map((serial) => ({
    ...{ source: StorageSource.BMC, kind: StorageSignKind.DRIVE, name: `Bay ${serial}`, serial },
  }));
  const bmcDrives = create(BmcDriveListSchema, { available: true, complete: true, drives });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { facts } = host.snapshot;
  host.snapshot = { ...host.snapshot, facts: { ...facts, bmcDrives, inventory: looked() } };
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const found = gapsOf(pass, looked());
  expect(found).toHaveLength(1);
  expect(found[0]?.text).toMatch(/DISK-2.*runner sees no such disk/);
});

test('a drive that only the BMC lists is part of a RAID volume if the policy says so', () => {
  const volume = create(StorageDeviceSchema, { ...virtioDisk, raidVolume: true });
  const inventory = create(InventorySchema, { devices: [volume] });
  const drive = { source: StorageSource.BMC, kind: StorageSignKind.DRIVE, name: 'Bay 7' };
  const bmcDrives = create(BmcDriveListSchema, {
    ...{ available: true, complete: true, drives: [{ ...drive, serial: 'SPARE-1' }] },
  });
  const found = (raidDrives: RaidDrives) => {
    const host = bench({ cleaning: { raidDrives } });
    host.apply({ kind: 'tick' });
    host.report(verified());
    const { facts } = host.snapshot;
    host.snapshot = { ...host.snapshot, facts: { ...facts, bmcDrives, inventory } };
    return gapsOf(beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs }), inventory);
  };
  expect(found(RaidDrives.UNSPECIFIED).map(({ text }) => text)).toEqual([
    expect.stringMatching(/SPARE-1.*or a spare with data.*set cleaning.raid_drives to accept/),
  ]);
  expect(found(RaidDrives.ACCEPT)).toEqual([]);
});

const failing = create(StorageDeviceSchema, {
  ...virtioDisk,
  health: create(DeviceHealthSchema, { passed: false }),
});

test.each([
  [FailingDisks.UNSPECIFIED, {}, 0],
  [FailingDisks.ACCEPT, {}, 0],
  [FailingDisks.REFUSE, {}, 1],
  [FailingDisks.REFUSE, { retired: true }, 0],
])(
  'a disk that says that it is failing keeps a host by policy (%#)',
  (failingDisks, more, count) => {
    const host = bench({ cleaning: { failingDisks }, ...more });
    const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
    const silent = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-2' });
    const found = gapsOf(pass, create(InventorySchema, { devices: [failing, silent] }));
    expect(found).toHaveLength(count);
    for (const { text } of found) expect(text).toContain('disk DISK-1 says that it is failing');
    pass.status.deletion = create(DeletionSchema, {});
    expect(gapsOf(pass, create(InventorySchema, { devices: [failing] }))).toEqual([]);
  },
);

test('a clean ends before it writes where a disk is failing', () => {
  const host = bench({ cleaning: { failingDisks: FailingDisks.REFUSE } });
  driveToErase(host, [failing]);
  expect(host.record.host?.status).toMatchObject({
    ...{ state: HostState.MANAGEABLE, run: { outcome: RunOutcome.FAILED } },
    lastError: { failure: { type: FailureType.DEVICE_REFUSED } },
  });
});

function looked() {
  const look = inspected();
  const inventory = look.case === 'complete' ? look.value.observations?.inventory : undefined;
  if (inventory === undefined) throw new Error('an inspection brings an inventory');
  return inventory;
}
