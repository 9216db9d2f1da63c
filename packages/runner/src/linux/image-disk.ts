/** One disk of this machine, opened to be written with an image. */
import type { DeviceFacts } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { type BlockDevices, DeviceError } from '../machine/block-devices.ts';
import type { ImageDisk } from '../provision/disk-writer.ts';
import { runTool } from './tool.ts';

const rereadTimeoutMs = 60_000;

/** Holds the disk, and lets it go when `use` has ended. Rejects with `DeviceError`. */
export async function withImageDisk<T>(
  devices: BlockDevices,
  device: DeviceFacts,
  use: (disk: ImageDisk) => Promise<T>,
): Promise<T> {
  const [region] = device.regions;
  if (region === undefined || device.regions.length !== 1) {
    const count = `${device.regions.length} namespaces`;
    throw new DeviceError(`${device.name} has ${count}: an image goes onto a disk with one`);
  }
  const held = await devices.hold(device, 'write');
  try {
    const [open] = held.regions;
    if (open === undefined) throw new DeviceError(`${device.name} cannot be opened`);
    const { sizeBytes, logicalBlockBytes: blockBytes } = region;
    return await use({ open, sizeBytes, blockBytes, present: () => held.checkAttached() });
  } finally {
    await held.close();
  }
}

/**
 * Lets the kernel read the new partition table, once the disk is closed. That it succeeded is seen
 * in the next listing of the devices. Rejects with `DeviceError`.
 */
export async function rereadPartitions(exec: Exec, device: DeviceFacts): Promise<void> {
  for (const { name } of device.regions) {
    await runTool(exec, 'blockdev', ['--rereadpt', `/dev/${name}`], rereadTimeoutMs);
  }
}
