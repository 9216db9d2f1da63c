/** Devices that may be boot media are read whole, and no others. */
import { createHash } from 'node:crypto';
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { addDisk, clock, folder, image, mib, useFolder } from '../erase/erase.fixture.ts';
import { fileDisks } from '../linux/file-disks.ts';
import { fileMachine } from '../linux/file-machine.ts';
import type { BlockDevices } from './block-devices.ts';
import { takeInventory } from './inventory.ts';

useFolder();

const digestOf = (name: string) => createHash('sha256').update(image(name)).digest('hex');

/** The digests of an inventory by device, and the devices that were held for it. */
async function inspect(bootMedia: { sha256: string; sizeBytes: number }[]) {
  const disks = fileDisks(folder, clock);
  const held: string[] = [];
  const devices: BlockDevices = {
    ...disks,
    hold: (device, access) => {
      held.push(`${device.name} ${access}`);
      return disks.hold(device, access);
    },
  };
  const machine = fileMachine(join(folder, 'dmi'), clock);
  const order = { runnerSession: 's', bootMedia, log: quietLog };
  const inventory = await takeInventory(machine, devices, 0, order);
  const found = inventory.devices.map(({ device, contentSha256 }) => [device, contentSha256]);
  return { held, found: Object.fromEntries(found) as Record<string, string> };
}

test('only devices of the size and kind of a boot medium are read', async () => {
  addDisk('sda', { transport: 'sata' });
  addDisk('sdb', { transport: 'usb' });
  addDisk('sdc', { transport: 'usb' }, ['sdc'], 3 * mib);
  addDisk('mmcblk0', { transport: 'mmc' }, ['mmcblk0'], 2 * mib);
  const before = digestOf('sdb');
  const { held, found } = await inspect([{ sha256: 'a'.repeat(64), sizeBytes: 2 * mib }]);
  expect(held.toSorted()).toEqual(['sdb read']);
  expect(found).toEqual({ sda: '', sdb: before, sdc: '', mmcblk0: '' });
  expect(digestOf('sdb')).toBe(before);
});

test('a medium whose size is no whole number of transfers is read to its end', async () => {
  addDisk('sdb', { transport: 'usb' }, ['sdb'], 2 * mib + 512);
  const { found } = await inspect([{ sha256: '', sizeBytes: 2 * mib + 512 }]);
  expect(found).toEqual({ sdb: digestOf('sdb') });
});

test('without boot media nothing is read', async () => {
  addDisk('sdb', { transport: 'usb' });
  expect((await inspect([])).held).toEqual([]);
});

test('a device that cannot be read whole has no digest, and the inspection goes on', async () => {
  addDisk('sdb', { transport: 'usb' });
  const disks = fileDisks(folder, clock);
  const machine = fileMachine(join(folder, 'dmi'), clock);
  const warned: unknown[] = [];
  const log = { warn: (...args: unknown[]) => void warned.push(args) };
  const cut: BlockDevices = {
    ...disks,
    hold: async (device, access) => {
      const held = await disks.hold(device, access);
      truncateSync(join(folder, 'sdb.img'), mib);
      return held;
    },
  };
  const bootMedia = [{ sha256: '', sizeBytes: 2 * mib }];
  const inventory = await takeInventory(machine, cut, 0, { runnerSession: 's', bootMedia, log });
  expect(inventory.devices.map(({ contentSha256 }) => contentSha256)).toEqual(['']);
  expect(warned).toHaveLength(1);
});
