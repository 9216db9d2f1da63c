/** The block devices of the Linux machine we run on. */
import type { Exec } from '@rackwright/platform';
import type { BlockDevices, DeviceListing } from '../machine/block-devices.ts';
import { askDevices } from './ask-device.ts';
import { holdDevice } from './held-device.ts';
import { unhide } from './hidden-area.ts';
import { dismantle } from './holders.ts';
import { isReplayProtected, readBlockDevice, readInUse } from './sys-block.ts';
import { namesIn } from './sys-files.ts';
import { isNvmeBlock, isNvmePath, readNvmeDevices } from './sys-nvme.ts';
import { realRoots, type SysRoots } from './sys-roots.ts';
import { readSigns } from './sys-signs.ts';

export function linuxDevices(exec: Exec, roots: SysRoots = realRoots): BlockDevices {
  return {
    list: () => list(exec, roots),
    hold: (device, access = 'write') => holdDevice(device, exec, roots, access),
    dismantle: ({ regions }) => dismantle(exec, roots, regions),
    unhide: (device) => unhide(exec, roots, device),
  };
}

async function list(exec: Exec, roots: SysRoots): Promise<DeviceListing> {
  const inUse = await readInUse(roots);
  const nvme = await readNvmeDevices(roots, exec, inUse);
  const owned = new Set(nvme.flatMap(({ regions }) => regions.map(({ name }) => name)));
  const names = (await namesIn(roots.sys, 'block')).filter((name) => {
    // B1: a namespace without a known controller is an unknown device.
    if (isNvmeBlock(name)) return !isNvmePath(name) && !owned.has(name);
    return !isReplayProtected(name);
  });
  const devices = await Promise.all(names.map((name) => readBlockDevice(roots, name, inUse)));
  const described = await askDevices(exec, roots, [...devices, ...nvme]);
  return { devices: described, signs: await readSigns(roots) };
}
