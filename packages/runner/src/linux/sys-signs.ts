/**
 * Storage that something other than a block device shows: functions of a bus without a driver,
 * hidden drives, persistent memory, cards, and devices without blocks. Reads only.
 *
 * Invariants:
 * G3 A sign only reports a presence; `decideSigns` decides its meaning.
 * G4 Every bus that the ramdisk has storage drivers for is looked at.
 */
import { join } from 'node:path';
import type { StorageSign } from '@rackwright/erasure';
import { makeSign } from './make-sign.ts';
import { cleanText } from './sys-block.ts';
import { namesIn, readNumber, readText, resolvePath } from './sys-files.ts';
import { readMemorySigns } from './sys-memory.ts';
import type { SysRoots } from './sys-roots.ts';

/** PCI base class 01: mass storage. 0805: SD host. 0502: CXL memory. 0c03: USB. */
const pciClasses: readonly (readonly [RegExp, string])[] = [
  [/^0x01/, 'a storage controller'],
  [/^0x0805/, 'an SD host controller'],
  [/^0x0502/, 'CXL memory'],
  [/^0x0c03(?!fe|ff)/, 'a USB controller'],
];

/** Virtio device ids (virtio 1.2 §5) of storage. */
const virtioIds: Readonly<Record<string, string>> = {
  '0x0002': 'a virtio disk',
  '0x0008': 'a virtio SCSI host',
  '0x001b': 'virtio persistent memory',
};

/** ACPI ids of storage that is on no bus with classes (ACPI §9.20; SD host of PNP0D40). */
const acpiIds: Readonly<Record<string, string>> = {
  ACPI0012: 'NVDIMMs',
  ACPI0017: 'CXL memory',
  PNP0D40: 'an SD host controller',
  AMDI0040: 'an eMMC host controller',
  AMDI0041: 'an SD host controller',
  '80860F14': 'an SD host controller',
  '80860F16': 'an SD host controller',
  '80865ACA': 'an SD host controller',
  '80865ACC': 'an eMMC host controller',
  INT33BB: 'an SD host controller',
  INT33C6: 'an SD host controller',
  INT344D: 'an SD host controller',
  INT3436: 'an SD host controller',
  QCOM8051: 'an SD host controller',
  QCOM8052: 'an SD host controller',
  LTFS0001: 'flash memory',
};

/** SPC-4 table 142: peripheral device types that hold data. */
const scsiTypes: Readonly<Record<string, string>> = {
  '0': 'a disk',
  '1': 'a tape drive',
  '4': 'a write-once drive',
  '5': 'an optical drive',
  '7': 'an optical memory drive',
  '14': 'a simplified disk',
  '20': 'a zoned disk',
};

/** All signs of the machine, in the order of their readers. */
export async function readSigns(roots: SysRoots): Promise<StorageSign[]> {
  const readers = [
    readPci,
    readVirtio,
    readUsb,
    readAcpi,
    readScsi,
    readCards,
    readReplayProtected,
    readMemorySigns,
    readFlashChips,
  ];
  const signs = await Promise.all(readers.map((read) => read(roots)));
  return signs.flat();
}

async function isDriven(folder: string): Promise<boolean> {
  return (await resolvePath(folder, 'driver')) !== '';
}

/**
 * Storage on the PCI bus: each device without a driver, as "0000:00:01.1 (8086:7010)", and the
 * drives that a SATA controller hides (`remapped_nvme` of ahci).
 */
async function readPci(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const address of await namesIn(roots.sys, 'bus/pci/devices')) {
    const folder = join(roots.sys, 'bus/pci/devices', address);
    const type = await readText(folder, 'class');
    const [, kind] = pciClasses.find(([pattern]) => pattern.test(type)) ?? [];
    if (kind === undefined) continue;
    const vendor = (await readText(folder, 'vendor')).replace('0x', '');
    const device = (await readText(folder, 'device')).replace('0x', '');
    const name = `${address} (${vendor}:${device})`;
    if (!(await isDriven(folder))) {
      signs.push(makeSign('controllerWithoutDriver', name, { detail: kind }));
    }
    const remapped = await readNumber(folder, 'remapped_nvme');
    for (let drive = 1; drive <= remapped; drive++) {
      signs.push(makeSign('remappedDrive', `${name} drive ${drive}`));
    }
  }
  return signs;
}

/** The PCI function of a virtio device has a driver even when the device itself has none. */
async function readVirtio(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of await namesIn(roots.sys, 'bus/virtio/devices')) {
    const folder = join(roots.sys, 'bus/virtio/devices', name);
    const detail = virtioIds[await readText(folder, 'device')];
    if (detail === undefined || (await isDriven(folder))) continue;
    signs.push(makeSign('controllerWithoutDriver', name, { detail }));
  }
  return signs;
}

/** Interfaces of the class mass storage (08) that no driver has taken. */
async function readUsb(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of await namesIn(roots.sys, 'bus/usb/devices')) {
    const folder = join(roots.sys, 'bus/usb/devices', name);
    if ((await readText(folder, 'bInterfaceClass')) !== '08') continue;
    if (await isDriven(folder)) continue;
    const device = join(await resolvePath(folder), '..');
    signs.push(
      makeSign('controllerWithoutDriver', name, {
        model: cleanText(await readText(device, 'product')),
        serial: cleanText(await readText(device, 'serial')),
        detail: 'USB mass storage',
      }),
    );
  }
  return signs;
}

/** Present (bit 0 of _STA, ACPI §6.3.7) and without a driver at its physical node. */
async function readAcpi(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of await namesIn(roots.sys, 'bus/acpi/devices')) {
    const folder = join(roots.sys, 'bus/acpi/devices', name);
    const detail = acpiIds[await readText(folder, 'hid')];
    if (detail === undefined) continue;
    const status = await readText(folder, 'status');
    if (status !== '' && (Number(status) & 1) === 0) continue;
    if ((await isDriven(folder)) || (await isDriven(join(folder, 'physical_node')))) continue;
    signs.push(makeSign('controllerWithoutDriver', name, { source: 'firmware', detail }));
  }
  return signs;
}

/** Units that a SCSI host shows and that have no block device. */
async function readScsi(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of await namesIn(roots.sys, 'bus/scsi/devices')) {
    const folder = join(roots.sys, 'bus/scsi/devices', name);
    const kind = scsiTypes[await readText(folder, 'type')];
    if (kind === undefined || (await namesIn(folder, 'block')).length > 0) continue;
    const state = await readText(folder, 'state');
    signs.push(
      makeSign('deviceWithoutBlocks', name, {
        model: cleanText(`${await readText(folder, 'vendor')} ${await readText(folder, 'model')}`),
        detail: state === '' ? kind : `${kind}, ${state}`,
      }),
    );
  }
  return signs;
}

/** Cards without blocks, and readers without a card. Cards that store nothing are no storage. */
async function readCards(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  const cards = await namesIn(roots.sys, 'bus/mmc/devices');
  for (const name of cards) {
    const folder = join(roots.sys, 'bus/mmc/devices', name);
    const type = await readText(folder, 'type');
    if (type === 'SDIO' || (await namesIn(folder, 'block')).length > 0) continue;
    signs.push(
      makeSign('deviceWithoutBlocks', name, {
        model: cleanText(await readText(folder, 'name')),
        serial: cleanText(await readText(folder, 'serial')),
        detail: `a card (${type || 'of no known type'})`,
      }),
    );
  }
  for (const reader of await namesIn(roots.sys, 'class/mmc_host')) {
    if (cards.some((card) => card.startsWith(`${reader}:`))) continue;
    signs.push(makeSign('emptyReader', reader, { detail: 'a card reader' }));
  }
  for (const name of await namesIn(roots.sys, 'bus/memstick/devices')) {
    const folder = join(roots.sys, 'bus/memstick/devices', name);
    if (await isDriven(folder)) continue;
    signs.push(makeSign('deviceWithoutBlocks', name, { detail: 'a memory stick' }));
  }
  return signs;
}

/** JESD84-B51 §6.6.22. Old kernels show it among the block devices, newer ones on its own bus. */
async function readReplayProtected(roots: SysRoots): Promise<StorageSign[]> {
  const folders = ['block', 'bus/mmc_rpmb/devices'];
  const names = await Promise.all(folders.map((folder) => namesIn(roots.sys, folder)));
  const found = names.flat().filter((name) => /^mmcblk\d+rpmb$/.test(name));
  return [...new Set(found)].map((name) => makeSign('replayProtected', name, { source: 'kernel' }));
}

async function readFlashChips(roots: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of await namesIn(roots.sys, 'class/mtd')) {
    if (!/^mtd\d+$/.test(name)) continue;
    const folder = join(roots.sys, 'class/mtd', name);
    signs.push(
      makeSign('flashChip', name, {
        source: 'kernel',
        model: cleanText(await readText(folder, 'name')),
        sizeBytes: await readNumber(folder, 'size'),
        detail: cleanText(await readText(folder, 'type')),
      }),
    );
  }
  return signs;
}
