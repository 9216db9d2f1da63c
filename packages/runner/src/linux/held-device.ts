/**
 * One device of this machine, opened once and identified by what the kernel and the device itself
 * report of the open device, never by a name.
 *
 * Node has no ioctl. An open device is found by its device number in /sys/dev/block. The kernel
 * keeps a number for as long as the device is open, and counts attachments in `diskseq` (Linux
 * 5.15), so that another disk in the same place shows.
 *
 * Invariants:
 * H1 A region is opened by its kernel name once, in `holdDevice`. Nothing resolves that name again.
 * H2 An identity that cannot be read is not confirmed: a kernel that counts no attachments is
 *    refused.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DeviceFacts, Region } from '@rackwright/erasure';
import { type Exec, errorText } from '@rackwright/platform';
import { type DeviceAccess, DeviceError, type HeldDevice } from '../machine/block-devices.ts';
import { type DirectRegion, openDirect } from './direct-region.ts';
import {
  formatNamespaces,
  type OpenNamespace,
  readNvmeLog,
  readNvmeSerial,
  readNvmeWork,
} from './nvme.ts';
import { eraseItself, readOwnWork } from './self-erase.ts';
import { readAttachment, readNames, readRegion } from './sys-block.ts';
import { readText, resolvePath } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';

/** Properties that must not change while a region is open. */
interface RegionIdentity {
  /** Number of the attachment, counted by the kernel since its start. */
  readonly attachment: number;
  readonly sizeBytes: number;
  readonly serial: string;
  readonly wwn: string;
  /** NVMe: number of the namespace; empty for other devices. */
  readonly namespaceId: string;
}

interface HeldRegion {
  readonly region: Region;
  readonly open: DirectRegion;
  /** The identity at its opening. */
  readonly identity: RegionIdentity;
}

/** Opens all regions of a device. Rejects with `DeviceError`, and then holds nothing. */
export async function holdDevice(
  device: DeviceFacts,
  exec: Exec,
  roots: SysRoots,
  access: DeviceAccess,
): Promise<HeldDevice> {
  const held: HeldRegion[] = [];
  try {
    for (const region of device.regions) {
      const open = await openDirect(join(roots.dev ?? '/dev', region.name), exec, access);
      const found = await readIdentity(roots, open, region).catch(async (error: unknown) => {
        await open.close();
        throw error;
      });
      held.push({ region, open, identity: found });
      mustBePlanned(device, region, found, held.length === 1);
    }
    const result = heldDevice(device, held, exec, roots);
    await result.confirm();
    return result;
  } catch (error) {
    for (const { open } of held) await open.close();
    throw error;
  }
}

function heldDevice(
  device: DeviceFacts,
  held: readonly HeldRegion[],
  exec: Exec,
  roots: SysRoots,
): HeldDevice {
  const tools = held.map(toolDevice);
  const present = async (): Promise<void> => {
    for (const { region, open, identity } of held) {
      mustBeSame(region, identity, await readIdentity(roots, open, region));
    }
  };
  return {
    regions: held.map(({ open }) => open),
    checkAttached: present,
    confirm: async () => {
      await askDevice(device, held, exec, roots);
      await present();
    },
    nvmeFormat: (mode) => formatNamespaces(exec, tools, mode),
    eraseItself: async (method) => {
      const [first] = tools;
      if (first === undefined) throw new DeviceError(`${device.name} has nothing that is open`);
      return await eraseItself(exec, device, first, method, pause);
    },
    ownWork: async () => {
      const [first] = tools;
      if (device.nvme !== undefined) return await readNvmeWork(exec, tools);
      return first === undefined ? undefined : await readOwnWork(exec, device, first);
    },
    readLog: async () => (device.nvme === undefined ? [] : readNvmeLog(exec, tools)),
    close: async () => {
      for (const { open } of held) await open.close();
    },
  };
}

function toolDevice({ region, open }: Pick<HeldRegion, 'region' | 'open'>): OpenNamespace {
  return { name: region.name, descriptor: open.descriptor, sizeBytes: region.sizeBytes };
}

/** The kernel's facts of an open region. Rejects as vanished when it knows it no more. */
async function readIdentity(
  roots: SysRoots,
  { deviceNumber }: DirectRegion,
  region: Region,
): Promise<RegionIdentity> {
  const folder = await resolvePath(roots.sys, 'dev/block', deviceNumber);
  if (deviceNumber === '' || folder === '') {
    throw new DeviceError(`${region.name} (${deviceNumber}) is not attached any more`, {
      loss: 'vanished',
    });
  }
  const attachment = await readAttachment(folder);
  if (attachment === undefined) {
    throw new DeviceError(`${region.name}: the kernel does not count attachments (diskseq)`);
  }
  const { serial, wwn } = await readNames(folder, region.name);
  const { sizeBytes } = await readRegion(folder, region.name);
  return { attachment, sizeBytes, serial, wwn, namespaceId: await readText(folder, 'nsid') };
}

/** A controller's world wide name is that of its first namespace. */
function mustBePlanned(
  device: DeviceFacts,
  region: Region,
  found: RegionIdentity,
  isFirst: boolean,
): void {
  const planned = {
    attachment: region.attachment ?? found.attachment,
    sizeBytes: region.sizeBytes,
    serial: device.serial,
    wwn: isFirst ? device.wwn : found.wwn,
    namespaceId: found.namespaceId,
  };
  mustBeSame(region, planned, found);
}

const identityTexts: Readonly<Record<keyof RegionIdentity, string>> = {
  attachment: 'attachment',
  sizeBytes: 'size',
  serial: 'serial',
  wwn: 'WWN',
  namespaceId: 'namespace id',
};

function mustBeSame(region: Region, wanted: RegionIdentity, found: RegionIdentity): void {
  for (const field of Object.keys(identityTexts) as (keyof RegionIdentity)[]) {
    if (wanted[field] === found[field]) continue;
    throw changed(region.name, identityTexts[field], found[field], wanted[field]);
  }
}

function changed(
  name: string,
  action: string,
  found: string | number,
  wanted: string | number,
): DeviceError {
  const text = `${name} has the ${action} "${found}", not "${wanted}": it is another device`;
  return new DeviceError(text, { loss: 'changed' });
}

/**
 * Has the device itself answer again. NVMe: Identify Controller. SCSI: the kernel reads the vital
 * product pages and the capacity again, which `present` then sees. For other devices the kernel
 * asks anew by itself (virtio), or it is impossible.
 */
async function askDevice(
  device: DeviceFacts,
  held: readonly HeldRegion[],
  exec: Exec,
  roots: SysRoots,
): Promise<void> {
  for (const { region, open } of held) {
    if (device.nvme !== undefined) {
      const tool = toolDevice({ region, open });
      const serial = await readNvmeSerial(exec, tool);
      if (serial === undefined || serial === device.serial) continue;
      throw changed(region.name, 'serial', serial, device.serial);
    }
    const folder = await resolvePath(roots.sys, 'dev/block', open.deviceNumber);
    if ((await resolvePath(folder, 'device/scsi_disk')) === '') continue;
    try {
      await writeFile(join(folder, 'device/rescan'), '1');
    } catch (cause) {
      const text = errorText(cause);
      throw new DeviceError(`${region.name} does not answer: ${text}`, {
        cause,
        loss: 'vanished',
      });
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
