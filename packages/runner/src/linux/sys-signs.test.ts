/**
 * `recorded-storage.txt` is what Linux 6.1 shows in a QEMU machine with an SD card (sdhci-pci), an
 * NVDIMM, and disks on AHCI, virtio SCSI, USB, NVMe and virtio: "L path target" are links, "F path
 * content" files, "|" ends a line.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { decideScope, decideSigns, describeGap, signGaps } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DeviceListing } from '../machine/block-devices.ts';
import { linuxDevices } from './devices.ts';

const recorded = readFileSync(join(import.meta.dirname, 'recorded-storage.txt'), 'utf8');
const memory = 'sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0012:00/ndbus0/region0';
const card = 'sys/devices/pci0000:00/0000:00:01.0/mmc_host/mmc0/mmc0:4567';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rackwright-signs-'));
  put('proc/self/mountinfo', '');
  put('proc/swaps', '');
});

afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

function link(path: string, target: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  mkdirSync(join(root, target), { recursive: true });
  symlinkSync(join(root, target), join(root, path));
}

function remove(path: string): void {
  rmSync(join(root, path), { recursive: true, force: true });
}

function plant(): void {
  for (const line of recorded.split('\n')) {
    const [, kind = '', path = '', rest = ''] = /^([LF]) (\S+) ?(.*)$/.exec(line) ?? [];
    if (kind === 'F') put(path, rest.replaceAll('|', '\n'));
    if (kind === 'L') link(path, rest);
  }
}

const silent: Exec = { run: async () => ({ kind: 'notStarted', message: 'no tools here' }) };

async function list(): Promise<DeviceListing> {
  return linuxDevices(silent, { sys: join(root, 'sys'), proc: join(root, 'proc') }).list();
}

async function gaps(): Promise<string[]> {
  const { signs, devices } = await list();
  return signGaps(signs, devices).map(describeGap);
}

test('the card, the NVDIMM and all other disks of a machine are found and named', async () => {
  plant();
  const { devices } = await list();
  const facts = devices.map(({ name, transport, serial, sizeBytes }) => [
    ...[name, transport, serial],
    ...[sizeBytes / 1024 ** 2],
  ]);
  expect(facts).toEqual([
    ['mmcblk0', 'mmc', '0xdeadbeef', 64],
    ['pmem0', 'pmem', '8680-56341200', 64],
    ['sda', 'sata', '', 64],
    ['sdb', 'virtio', '', 64],
    ['sdc', 'usb', '', 64],
    ['sr0', 'optical', '', expect.any(Number)],
    ['vda', 'virtio', 'VBLK1', 64],
    ['nvme0', 'nvme', 'NVME1', 64],
  ]);
  const decided = decideScope(devices).map((decision) => decision.kind);
  expect(decided.slice(0, 2)).toEqual(['inScope', 'inScope']);
  expect(devices[0]).toMatchObject({
    model: 'QEMU!',
    wwn: 'cid.aa585951454d552101deadbeef006200',
    mediaType: 'flashCard',
    writeCache: 'none',
    capacity: { kind: 'notExamined' },
  });
  expect(devices[1]).toMatchObject({
    mediaType: 'persistentMemory',
    writeCache: 'fixedOn',
    capacity: { kind: 'examined', nativeBytes: 64 * 1024 ** 2, hostProtectedBytes: 0 },
  });
});

test('a card and an NVDIMM are overwritten: neither says what a discard leaves', async () => {
  plant();
  const chosen = decideScope((await list()).devices).flatMap((each) =>
    each.kind === 'inScope' && each.device.transport !== 'nvme' ? [each.method] : [],
  );
  expect(chosen.slice(0, 2)).toEqual(['overwrite', 'overwrite']);
});

test('the block devices of that machine account for each of its signs', async () => {
  plant();
  const { signs, devices } = await list();
  expect(decideSigns(signs, devices).map(({ kind, sign }) => `${sign.name} ${kind}`)).toEqual([
    'nmem0 accounted',
    'namespace0.0 accounted',
  ]);
});

test('the card without its driver is a gap, and so is the reader without its own', async () => {
  plant();
  remove('sys/block/mmcblk0');
  remove(`${card}/block`);
  expect(await gaps()).toEqual([
    expect.stringMatching(/^device mmc0:4567 \(QEMU!, .*a card \(SD\)/),
  ]);
  remove('sys/bus/mmc');
  remove('sys/class/mmc_host');
  remove('sys/devices/pci0000:00/0000:00:01.0/driver');
  expect(await gaps()).toEqual([
    expect.stringMatching(
      /^storage controller 0000:00:01.0 \(1b36:0007\) \(an SD host controller\)/,
    ),
  ]);
});

test('an NVDIMM without a block device is a gap, whatever is left of it', async () => {
  plant();
  remove('sys/block/pmem0');
  expect(await gaps()).toEqual([
    expect.stringMatching(/^memory nmem0 \(8680-56341200, an NVDIMM\).*namespace/),
    expect.stringMatching(/^memory namespace0.0 \(a namespace in mode raw\)/),
  ]);
  remove('sys/bus/nd');
  put('sys/firmware/acpi/tables/NFIT', '');
  put('proc/iomem', '100000000-103ffffff : Persistent Memory\n');
  expect((await gaps()).map((gap) => gap.split(' ').slice(0, 2).join(' '))).toEqual([
    'memory NFIT',
    'memory 0x100000000',
  ]);
});

test('persistent memory that is in no namespace, or kept by a mode, is a gap', async () => {
  plant();
  put(`${memory}/nstype`, '5');
  put(`${memory}/available_size`, '1048576');
  expect(await gaps()).toEqual([expect.stringContaining('space that is in no namespace')]);
  put(`${memory}/namespace0.0/size`, String(66 * 1024 ** 2));
  const { devices } = await list();
  const decision = decideScope(devices).find(({ device }) => device.name === 'pmem0');
  expect(decision).toMatchObject({ kind: 'refused', why: 'fixedHiddenArea' });
});

test('drives that the chipset hides are named, and virtio and USB without a driver', async () => {
  plant();
  put('sys/devices/pci0000:00/0000:00:1f.2/remapped_nvme', '2');
  remove('sys/devices/pci0000:00/0000:00:05.0/virtio1/driver');
  const usb = 'sys/devices/pci0000:00/0000:00:03.0/usb2/2-1';
  put(`${usb}/serial`, 'USB1');
  put(`${usb}/2-1:1.0/bInterfaceClass`, '08');
  link('sys/bus/usb/devices/2-1:1.0', `${usb}/2-1:1.0`);
  const found = (await gaps()).map((gap) => gap.slice(0, gap.indexOf(':', 30)));
  expect(found).toHaveLength(4);
  expect(found.join('\n')).toMatch(/1f\.2 \(8086:2922\) drive 1.*\n.*drive 2/);
  expect(found.join('\n')).toMatch(/virtio1 \(a virtio disk\)/);
});

test('ACPI storage, units without blocks, readers, chips and RPMB are named', async () => {
  put('sys/bus/acpi/devices/80860F14:00/hid', '80860F14');
  put('sys/bus/acpi/devices/80860F14:00/status', '15');
  put('sys/bus/acpi/devices/80860F14:01/hid', '80860F14');
  put('sys/bus/acpi/devices/80860F14:01/status', '0');
  put('sys/bus/scsi/devices/2:0:0:0/type', '0');
  put('sys/bus/scsi/devices/2:0:0:0/state', 'offline');
  put('sys/bus/scsi/devices/2:0:1:0/type', '13');
  put('sys/class/mmc_host/mmc1/uevent', '');
  put('sys/class/mtd/mtd0/name', 'BIOS');
  put('sys/class/mtd/mtd0ro/name', 'BIOS');
  put('sys/block/mmcblk0rpmb/size', '8192');
  const { signs, devices } = await list();
  expect(decideSigns(signs, devices).map(({ kind, sign }) => `${sign.name} ${kind}`)).toEqual([
    '80860F14:00 gap',
    '2:0:0:0 gap',
    'mmc1 decided',
    'mmcblk0rpmb decided',
    'mtd0 decided',
  ]);
});
