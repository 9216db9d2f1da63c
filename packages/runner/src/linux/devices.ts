/** The block devices of the Linux machine we run on. */
import { join } from 'node:path';
import type { StorageSign } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import type { BlockDevices, DeviceListing } from '../block-devices.ts';
import { holdDevice } from './held-device.ts';
import { isReplayProtected, readBlockDevice, readInUse, type SysRoots } from './sys-block.ts';
import { namesIn, readText, resolvePath } from './sys-files.ts';
import { isNvmeBlock, readNvmeDevices } from './sys-nvme.ts';

export const realRoots: SysRoots = { sys: '/sys', proc: '/proc' };

/** PCI base class 01: mass storage. */
const storageClass = /^0x01/;

export function linuxDevices(exec: Exec, roots: SysRoots = realRoots): BlockDevices {
  return {
    list: () => list(exec, roots),
    hold: (device) => holdDevice(device, exec, roots),
  };
}

async function list(exec: Exec, roots: SysRoots): Promise<DeviceListing> {
  const inUse = await readInUse(roots);
  const names = (await namesIn(roots.sys, 'block')).filter(
    (name) => !isNvmeBlock(name) && !isReplayProtected(name),
  );
  const devices = await Promise.all(names.map((name) => readBlockDevice(roots, name, inUse)));
  const nvme = await readNvmeDevices(roots, exec, inUse);
  return { devices: [...devices, ...nvme], signs: await readUndriven(roots) };
}

/** Storage functions on PCI without a driver: "0000:00:01.1 (8086:7010)". */
async function readUndriven(roots: SysRoots): Promise<StorageSign[]> {
  const undriven: StorageSign[] = [];
  for (const address of await namesIn(roots.sys, 'bus/pci/devices')) {
    const folder = join(roots.sys, 'bus/pci/devices', address);
    if (!storageClass.test(await readText(folder, 'class'))) continue;
    if ((await resolvePath(folder, 'driver')) !== '') continue;
    const vendor = (await readText(folder, 'vendor')).replace('0x', '');
    const device = (await readText(folder, 'device')).replace('0x', '');
    undriven.push({
      source: 'bus',
      kind: 'controllerWithoutDriver',
      name: `${address} (${vendor}:${device})`,
      ...{ model: '', serial: '', sizeBytes: 0, detail: '', devices: [] },
    });
  }
  return undriven;
}
