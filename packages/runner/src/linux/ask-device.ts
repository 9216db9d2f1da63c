/**
 * Facts that devices report on their own commands, beside the kernel's: native size, cache, health,
 * ways to erase themselves. Writes nothing.
 *
 * Invariants:
 * A1 A device that answers nothing keeps its place in the list; a missing fact is absent, or
 *    `notExamined` with the reason.
 */
import { join } from 'node:path';
import type { CapacityFacts, DeviceFacts } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { type AtaIdentity, parseAtaIdentity } from './ata-identity.ts';
import { notExamined, readAtaCapacity, readScsiCapacity } from './capacity.ts';
import { readHealth } from './health.ts';
import { readNvmeAskedFacts } from './nvme.ts';
import { readScsiSanitize } from './self-erase.ts';
import { readText } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';
import { toolOutput } from './tool.ts';
import { readWriteCache } from './write-cache.ts';

/** Devices that are queried at the same time; a broken one takes until its timeouts. */
const askedAtOnceMax = 8;
const identityTimeoutMs = 20_000;
const virtioSizeReason = 'a virtio disk has no other size to be asked for';
const cardSizeReason = 'a card has no command that tells its native size';

type DeviceResponses = Pick<DeviceFacts, 'capacity' | 'writeCache' | 'health' | 'sanitize'>;

/** The same devices in the same order. */
export async function askDevices(
  exec: Exec,
  roots: SysRoots,
  devices: readonly DeviceFacts[],
): Promise<DeviceFacts[]> {
  const described: DeviceFacts[] = [...devices];
  const waiting = [...devices.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, device] = next;
      described[index] = { ...device, ...(await askDevice(exec, roots, device)) };
    }
  };
  await Promise.all(Array.from({ length: askedAtOnceMax }, work));
  return described;
}

async function askDevice(
  exec: Exec,
  roots: SysRoots,
  device: DeviceFacts,
): Promise<DeviceResponses> {
  switch (device.transport) {
    case 'nvme':
    case 'nvmeFabrics':
      return {
        ...(await readNvmeAskedFacts(exec, device.name)),
        ...(await healthOf(exec, device.name)),
      };
    case 'sata':
    case 'sas':
    case 'fibreChannel':
    case 'iscsi':
      return await askScsi(exec, roots, device);
    case 'usb':
      return await askScsiOrPlain(exec, roots, device, cardSizeReason);
    case 'virtio':
      return await askScsiOrPlain(exec, roots, device, virtioSizeReason);
    case 'mmc':
      return await askPlain(exec, roots, device, cardSizeReason);
    case 'pmem':
      return await askPlain(exec, roots, device, undefined);
    case 'mmcBoot':
    case 'multipath':
    case 'virtualMedia':
    case 'optical':
    case 'kernel':
    case 'unknown':
      // It is never erased, so no facts of it are needed.
      return {};
  }
}

/** A transport that has disks on SCSI and others. `reason`: as for the others. */
async function askScsiOrPlain(
  exec: Exec,
  roots: SysRoots,
  device: DeviceFacts,
  reason: string,
): Promise<DeviceResponses> {
  return device.name.startsWith('sd')
    ? await askScsi(exec, roots, device)
    : await askPlain(exec, roots, device, reason);
}

/** Devices without commands of their own. `reason`: why their native size is not known. */
async function askPlain(
  exec: Exec,
  roots: SysRoots,
  device: DeviceFacts,
  reason: string | undefined,
): Promise<DeviceResponses> {
  return {
    ...(await cacheOf(exec, roots, device)),
    ...(reason === undefined ? {} : { capacity: notExamined(reason) }),
  };
}

/** Disks on SCSI, ATA disks among them: those answer through its translation (SAT). */
async function askScsi(exec: Exec, roots: SysRoots, device: DeviceFacts): Promise<DeviceResponses> {
  if (device.regions.length === 0) return {};
  const path = `/dev/${device.name}`;
  const vendor = await readText(roots.sys, 'block', device.name, 'device/vendor');
  const isAta = device.transport === 'sata' || vendor === 'ATA';
  const identity = isAta ? await readIdentity(exec, path) : undefined;
  return {
    ...(await cacheOf(exec, roots, device)),
    ...(await healthOf(exec, device.name)),
    capacity: await capacityOf(exec, device, isAta, identity),
    sanitize: identity?.sanitize ?? (await readScsiSanitize(exec, path)),
  };
}

async function readIdentity(exec: Exec, path: string): Promise<AtaIdentity | undefined> {
  return parseAtaIdentity(await toolOutput(exec, 'hdparm', ['--Istdout', path], identityTimeoutMs));
}

async function capacityOf(
  exec: Exec,
  device: DeviceFacts,
  isAta: boolean,
  identity: AtaIdentity | undefined,
): Promise<CapacityFacts> {
  const path = `/dev/${device.name}`;
  const sectorBytes = device.regions[0]?.logicalBlockBytes ?? 512;
  if (device.raidVolume) return notExamined('the disks behind a RAID controller are not seen');
  if (isAta) {
    return identity === undefined
      ? notExamined('it does not answer IDENTIFY DEVICE')
      : await readAtaCapacity(exec, path, identity, device.sizeBytes, sectorBytes);
  }
  if (device.transport === 'usb') {
    return notExamined('its bridge to USB passes no such command');
  }
  return await readScsiCapacity(exec, path, device.sizeBytes);
}

async function cacheOf(exec: Exec, roots: SysRoots, device: DeviceFacts): Promise<DeviceResponses> {
  const folder = join(roots.sys, 'block', device.name);
  const path = `/dev/${device.name}`;
  const writeCache = await readWriteCache(exec, folder, path, device.transport);
  return writeCache === undefined ? {} : { writeCache };
}

async function healthOf(exec: Exec, name: string): Promise<DeviceResponses> {
  const health = await readHealth(exec, `/dev/${name}`);
  return health === undefined ? {} : { health };
}
