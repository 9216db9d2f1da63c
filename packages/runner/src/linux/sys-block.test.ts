import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type DeviceFacts, decideScope, signGaps } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linuxDevices } from './devices.ts';
import { readCpus } from './linux-machine.ts';
import { transportOf, worldWideName } from './sys-block.ts';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rackwright-sys-'));
  put('proc/self/mountinfo', '21 1 8:1 / /boot rw - ext4 /dev/sda1 rw\n');
  put('proc/swaps', 'Filename Type Size Used Priority\n');
});

afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

function link(path: string, target: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  mkdirSync(join(root, target), { recursive: true });
  symlinkSync(join(root, target), join(root, path));
}

/** A block device at its place in /sys/devices, linked from /sys/block. */
function addBlock(name: string, place: string, files: Record<string, string | Uint8Array>): void {
  const folder = `sys/devices/${place}/block/${name}`;
  link(`sys/block/${name}`, folder);
  const defaults = { size: '2048', ro: '0', removable: '0', 'queue/logical_block_size': '512' };
  for (const [file, content] of Object.entries({ ...defaults, ...files })) {
    put(`${folder}/${file}`, content);
  }
}

/** Answers of nvme-cli by their first two arguments; everything else fails. */
function nvmeCli(answers: Record<string, object>): Exec {
  return {
    run: async ({ args }) => {
      const answer = answers[args.slice(0, 2).join(' ')];
      const stdout = answer === undefined ? '' : JSON.stringify(answer);
      return { kind: 'exited', code: answer === undefined ? 1 : 0, stdout, stderr: '' };
    },
  };
}

async function list(exec = nvmeCli({})) {
  return linuxDevices(exec, { sys: join(root, 'sys'), proc: join(root, 'proc') }).list();
}

async function only(exec?: Exec): Promise<DeviceFacts> {
  const { devices } = await list(exec);
  const [device] = devices;
  if (device === undefined || devices.length !== 1) throw new Error(`${devices.length} devices`);
  return device;
}

test('a SATA disk is read with its serial of VPD page 0x80, partitions and mounts', async () => {
  const serial = new Uint8Array([0, 0x80, 0, 8, ...Buffer.from('  AB-12 ')]);
  addBlock('sda', 'pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0', {
    'device/vendor': 'ATA     ',
    'device/model': 'ACME DISK       ',
    'device/rev': '2.5+',
    'device/vpd_pg80': serial,
    'device/wwid': 'naa.5000c50012345678',
    'queue/rotational': '1',
    'queue/discard_max_bytes': '0',
    'sda1/partition': '1',
    'sda1/start': '64',
    'sda1/size': '128',
    'sda1/dev': '8:1',
  });
  expect(await only()).toEqual({
    name: 'sda',
    transport: 'sata',
    model: 'ATA ACME DISK',
    serial: 'AB-12',
    wwn: 'naa.5000c50012345678',
    firmware: '2.5+',
    sizeBytes: 1_048_576,
    rotational: true,
    removable: false,
    readOnly: false,
    discardSupported: false,
    raidVolume: false,
    holders: ['mount /boot'],
    regions: [{ name: 'sda', sizeBytes: 1_048_576, logicalBlockBytes: 512 }],
    partitions: [{ region: 'sda', offsetBytes: 32_768, sizeBytes: 65_536 }],
    paths: [],
    mediaType: 'hdd',
    capacity: { kind: 'notExamined', reason: 'it does not answer IDENTIFY DEVICE' },
    sanitize: {
      ...{ overwrite: false, blockErase: false, cryptoScramble: false },
      ...{ ataSecurityErase: false, ataEnhancedErase: false },
    },
  });
});

test('the reader reads a virtio disk, held by device mapper', async () => {
  addBlock('vda', 'pci0000:00/0000:00:04.0/virtio1', {
    serial: 'V-1',
    'queue/discard_max_bytes': '2147483136',
  });
  mkdirSync(join(root, 'sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/holders/dm-0'), {
    recursive: true,
  });
  expect(await only()).toMatchObject({
    transport: 'virtio',
    serial: 'V-1',
    discardSupported: true,
    holders: ['dm-0'],
  });
});

test.each<[string, boolean | undefined]>([
  ['writesame_16_unmap', true],
  ['writesame', false],
  ['', undefined],
])('the zeroing mode "%s" says what a discard leaves', async (mode, zeroes) => {
  const place = 'pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0';
  addBlock('sda', place, {
    'queue/discard_max_bytes': '2147450880',
    'queue/discard_granularity': '4096',
    ...(mode === '' ? {} : { 'device/scsi_disk/0:0:0:0/zeroing_mode': mode }),
  });
  const device = await only();
  expect(device.discardZeroes).toBe(zeroes);
  expect(device.regions).toMatchObject([{ discardGranularityBytes: 4096 }]);
});

test('the reader reads an NVMe controller with its namespaces as one device', async () => {
  const place = 'sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0';
  link('sys/class/nvme/nvme0', place);
  put(`${place}/model`, 'QEMU NVMe Ctrl   ');
  put(`${place}/serial`, 'N-1  ');
  put(`${place}/firmware_rev`, '1.0');
  put(`${place}/transport`, 'pcie');
  put(`${place}/subsysnqn`, 'nqn.x');
  for (const name of ['nvme0n1', 'nvme0n2']) {
    addBlock(name, 'pci0000:00/0000:00:05.0/nvme/nvme0', {
      'queue/discard_max_bytes': '4096',
      wwid: 'eui.1',
    });
    symlinkSync(join(root, place), join(root, `${place}/block/${name}/device`));
  }
  const exec = nvmeCli({
    'id-ctrl /dev/nvme0': { oacs: 0x10a, fna: 4 },
    'id-ns /dev/nvme0n1': { dlfeat: 9 },
    'id-ns /dev/nvme0n2': { dlfeat: 1 },
  });
  expect(await only(exec)).toMatchObject({
    name: 'nvme0',
    transport: 'nvme',
    serial: 'N-1',
    model: 'QEMU NVMe Ctrl',
    sizeBytes: 2_097_152,
    regions: [{ name: 'nvme0n1' }, { name: 'nvme0n2' }],
    nvme: {
      formatSupported: true,
      cryptoEraseSupported: true,
      formatsAllNamespaces: false,
      deallocatedByte: 0,
    },
  });
});

test('namespaces without a block device are seen, and a controller without any', async () => {
  const place = 'sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0';
  link('sys/class/nvme/nvme0', place);
  put(`${place}/transport`, 'pcie');
  addBlock('nvme0n1', 'pci0000:00/0000:00:05.0/nvme/nvme0', { nsid: '4' });
  symlinkSync(join(root, place), join(root, `${place}/block/nvme0n1/device`));
  const asked = async (answers: Record<string, object>) => (await only(nvmeCli(answers))).nvme;
  const identity = { 'id-ctrl /dev/nvme0': { oacs: 0xa, fna: 1, unvmcap: 4096 } };
  const nsids = [{ nsid: 1 }, { nsid: 4 }, { nsid: 9 }];
  const hidden = await asked({ ...identity, 'list-ns /dev/nvme0': { nsid_list: nsids } });
  expect(hidden).toMatchObject({ hiddenNamespaces: [1, 9], unallocatedBytes: 4096 });
  expect(hidden?.formatsAllNamespaces).toBe(false);
  expect(await asked(identity)).toMatchObject({ namespacesUnlisted: true });
  const all = await asked({ ...identity, 'list-ns /dev/nvme0': { nsid_list: [{ nsid: 4 }] } });
  expect([all?.hiddenNamespaces, all?.namespacesUnlisted]).toEqual([undefined, undefined]);
  const plain = await asked({ 'id-ctrl /dev/nvme0': { oacs: 2 } });
  expect([plain?.hiddenNamespaces, plain?.namespacesUnlisted]).toEqual([undefined, undefined]);
});

test('two controllers of one subsystem are one device, and the paths are hidden', async () => {
  for (const controller of ['nvme0', 'nvme1']) {
    link(`sys/class/nvme/${controller}`, `sys/devices/virtual/nvme-subsystem/s0/${controller}`);
    put(`sys/class/nvme/${controller}/transport`, 'pcie');
    put(`sys/class/nvme/${controller}/subsysnqn`, 'nqn.two-ports');
  }
  addBlock('nvme0n1', 'virtual/nvme-subsystem/s0', {});
  addBlock('nvme0c0n1', 'virtual/nvme-subsystem/s0/nvme0', {});
  const subsystem = join(root, 'sys/devices/virtual/nvme-subsystem/s0');
  symlinkSync(subsystem, join(subsystem, 'block/nvme0n1/device'));
  expect(await only()).toMatchObject({ name: 'nvme0', regions: [{ name: 'nvme0n1' }] });
});

test.each<[string, string, Record<string, string>, boolean]>([
  ['a volume of MegaRAID', '2:0', { 'device/vendor': 'FTS' }, true],
  ['a drive that MegaRAID passes through', '0:4', { 'device/vendor': 'LSI' }, false],
  ['a volume of a Smart Array', '1:0', { 'device/raid_level': 'RAID 5' }, true],
  ['a drive that a Smart Array passes through', '0:0', { 'device/raid_level': 'N/A' }, false],
])('the reader knows %s', async (name, address, files, isVolume) => {
  const host = 'pci0000:00/0000:01:00.0/host0';
  if (name.includes('MegaRAID')) {
    put(`sys/devices/${host}/scsi_host/host0/proc_name`, 'megaraid_sas\n');
  }
  addBlock('sda', `${host}/target0:${address}/0:${address}:0`, files);
  expect((await only()).raidVolume).toBe(isVolume);
});

test('the reader keeps two drives apart whose maker gave them one NQN', async () => {
  for (const controller of ['nvme0', 'nvme1']) {
    link(`sys/class/nvme/${controller}`, `sys/devices/virtual/nvme-subsystem/s0/${controller}`);
    put(`sys/class/nvme/${controller}/transport`, 'pcie');
    put(`sys/class/nvme/${controller}/subsysnqn`, 'nqn.of-all');
    put(`sys/class/nvme/${controller}/serial`, `SN-${controller}`);
  }
  addBlock('nvme0n1', 'virtual/nvme-subsystem/s0', {});
  const subsystem = join(root, 'sys/devices/virtual/nvme-subsystem/s0');
  symlinkSync(subsystem, join(subsystem, 'block/nvme0n1/device'));
  const { devices } = await list();
  const decisions = decideScope(devices).map(({ kind, device }) => `${device.serial} ${kind}`);
  expect(decisions).toEqual(['SN-nvme0 inScope', 'SN-nvme1 refused']);
});

test('B1: a namespace whose controller is not known is refused, and not left out', async () => {
  addBlock('nvme7n1', 'pci0000:00/0000:01:00.0/nvme/nvme7', { serial: 'LOST' });
  const { devices } = await list();
  const decisions = decideScope(devices).map(({ kind, device }) => `${device.name} ${kind}`);
  expect(decisions).toEqual(['nvme7n1 refused']);
});

test('the boot partitions of an eMMC device do not prevent its erasure', async () => {
  const place = 'platform/soc/mmc_host/mmc0/mmc0:0001';
  const serial = { 'device/serial': '0x1234' };
  addBlock('mmcblk0', place, serial);
  for (const name of ['mmcblk0boot0', 'mmcblk0boot1'])
    addBlock(name, place, { ...serial, ro: '1' });
  addBlock('mmcblk0rpmb', place, serial);
  const { devices } = await list();
  const decisions = decideScope(devices).map(({ kind, device }) => `${device.name} ${kind}`);
  expect(decisions).toEqual(['mmcblk0 inScope', 'mmcblk0boot0 listed', 'mmcblk0boot1 listed']);
});

test('a card in a reader on USB is refused, whatever driver shows it', async () => {
  const reader = 'pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/rtsx_usb_sdmmc.0/mmc_host/mmc0';
  addBlock('mmcblk0', `${reader}/mmc0:0001`, { 'device/serial': '0x1234', size: '131072' });
  const { devices } = await list();
  expect(decideScope(devices)).toMatchObject([
    { kind: 'refused', why: 'usb', device: { name: 'mmcblk0', mediaType: 'flashCard' } },
  ]);
  expect(devices[0]?.capacity).toMatchObject({ reason: expect.stringContaining('a card') });
});

test('a controller that does not answer is read without erase methods', async () => {
  link('sys/class/nvme/nvme0', 'sys/devices/nvme0');
  put('sys/class/nvme/nvme0/transport', 'tcp');
  const device = await only();
  expect(device.transport).toBe('nvmeFabrics');
  expect(device.nvme?.formatSupported).toBe(false);
});

test('storage controllers without a driver are named', async () => {
  const add = (address: string, type: string): void => {
    put(`sys/bus/pci/devices/${address}/class`, type);
    put(`sys/bus/pci/devices/${address}/vendor`, '0x8086');
    put(`sys/bus/pci/devices/${address}/device`, '0x7010');
  };
  add('0000:00:01.1', '0x010180');
  add('0000:00:02.0', '0x010601');
  add('0000:00:03.0', '0x020000');
  link('sys/bus/pci/devices/0000:00:02.0/driver', 'sys/bus/pci/drivers/ahci');
  expect((await list()).signs.map(({ name }) => name)).toEqual(['0000:00:01.1 (8086:7010)']);
});

test.each<[string, string, string, string]>([
  ['sda', 'pci0000:00/usb1/1-1/host3/target3:0:0', '', 'usb'],
  ['sda', 'pci0000:00/host1/rport-1:0-0/target1:0:0', '', 'fibreChannel'],
  ['sda', 'platform/host2/session1/target2:0:0', '', 'iscsi'],
  ['sda', 'pci0000:00/host0/port-0:0/end_device-0:0/target0:0:0', '', 'sas'],
  ['sda', 'pci0000:00/0000:00:03.0/virtio0/host0/target0:0:0', '', 'virtio'],
  ['sda', 'pci0000:00/0000:02:00.0/host0/target0:2:0', '', 'sas'],
  ['sda', 'platform/mystery', '', 'unknown'],
  ['mmcblk0', 'platform/mmc0', '', 'mmc'],
  ['mmcblk0boot1', 'platform/mmc0', '', 'mmcBoot'],
  ['mmcblk0', 'pci0000:00/usb1/1-3/1-3:1.0/rtsx_usb_sdmmc.0/mmc_host/mmc0', '', 'usb'],
  ['mspblk0', 'pci0000:00/usb1/1-3/1-3:1.0/rtsx_usb_ms.0/memstick_host/memstick0', '', 'usb'],
  ['sr0', 'pci0000:00/usb1/host4', '', 'virtualMedia'],
  ['sr0', 'pci0000:00/ata2/host1', '', 'optical'],
  ['loop0', 'virtual', '', 'kernel'],
  ['dm-0', 'virtual', 'LVM-abc', 'kernel'],
  ['dm-1', 'virtual', 'mpath-3600', 'multipath'],
])('the device %s at %s is read as %s%s', (name, place, mapperUuid, transport) => {
  const path = `/sys/devices/${place}/block/${name}`;
  expect(transportOf(name, path, mapperUuid)).toBe(transport);
});

test.each([
  ['with a medium', '20480'],
  ['empty', '0'],
])('the virtual CD of a BMC is left alone, %s, and the disk can be erased', async (_, size) => {
  const disk = 'pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0';
  const cd = 'pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/host6/target6:0:0/6:0:0:0';
  addBlock('sda', disk, { size: '131072', 'device/serial': 'DISK-1' });
  addBlock('sr0', cd, {
    ...{ size, removable: '1', 'queue/logical_block_size': '2048' },
    ...{ 'device/vendor': 'ACME', 'device/model': 'DVD-ROM' },
  });
  // SPC-4 table 142: a disk is of type 0, a CD-ROM of type 5.
  for (const [place, type] of [[disk, '0'] as const, [cd, '5'] as const]) {
    put(`sys/devices/${place}/type`, type);
    link(`sys/bus/scsi/devices/${place.slice(place.lastIndexOf('/') + 1)}`, `sys/devices/${place}`);
  }
  const { devices, signs } = await list();
  expect(signGaps(signs, devices)).toEqual([]);
  expect(decideScope(devices)).toMatchObject([
    { kind: 'inScope', device: { name: 'sda' } },
    { kind: 'listed', why: 'virtualMedia', device: { name: 'sr0', removable: true } },
  ]);
});

test('only a name that is unique in the world is read as a WWN', () => {
  expect(worldWideName('naa.5000c500a')).toBe('naa.5000c500a');
  expect(worldWideName('t10.ATA     QEMU HARDDISK  QM0001')).toBe('');
});

test('the reader counts sockets, cores and threads', () => {
  const cpu = (processor: number, socket: number, core: number): string =>
    `processor\t: ${processor}\nmodel name\t: ACME\nphysical id\t: ${socket}\ncore id\t: ${core}\n`;
  expect(readCpus([cpu(0, 0, 0), cpu(1, 0, 0), cpu(2, 1, 0)].join('\n'))).toEqual([
    { model: 'ACME', cores: 1, threads: 2 },
    { model: 'ACME', cores: 1, threads: 1 },
  ]);
});

/** Names under /dev/disk/by-path, as Debian 12 shows them for disks at these places. */
test.each<[string, string, Record<string, string>, string[]]>([
  ['vda', 'pci0000:00/0000:00:04.0/virtio1', {}, ['pci-0000:00:04.0', 'virtio-pci-0000:00:04.0']],
  [
    'sda',
    'pci0000:00/0000:00:1f.2/ata7/host6/target6:0:1/6:0:1:0',
    { 'pci0000:00/0000:00:1f.2/ata7/ata_port/ata7/port_no': '3' },
    ['pci-0000:00:1f.2-ata-3.1', 'pci-0000:00:1f.2-ata-3'],
  ],
  [
    'sda',
    'pci0000:00/0000:00:05.0/virtio2/host4/target4:0:2/4:0:2:1',
    { 'pci0000:00/0000:00:05.0/virtio2/host4/scsi_host': '' },
    ['pci-0000:00:05.0-scsi-0:0:2:1'],
  ],
  [
    'sdb',
    'pci0000:00/0000:00:01.0/0000:01:00.0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0',
    {
      'pci0000:00/0000:00:01.0/0000:01:00.0/host0/port-0:1/end_device-0:1/sas_device/end_device-0:1/phy_identifier':
        '5',
    },
    ['pci-0000:01:00.0-sas-phy5-lun-0'],
  ],
  ['mmcblk0', 'platform/soc/mmc_host/mmc0/mmc0:0001', {}, []],
])('a disk is named by its path: %s at %s', async (name, place, files, paths) => {
  addBlock(name, place, {});
  for (const [path, content] of Object.entries(files)) put(`sys/devices/${path}`, content);
  expect((await only()).paths).toEqual(paths);
});
