/**
 * Reads devices whole that may be media which this machine boots from, so that the control plane
 * knows them by their content. Writes nothing.
 */
import { createHash } from 'node:crypto';
import { type BootMedium, type DeviceFacts, mayBeBootMedium } from '@rackwright/erasure';
import type { Log } from '@rackwright/platform';
import { type BlockDevices, transferBytesMax } from './block-devices.ts';

/**
 * The devices, those that may be boot media with the digest of their content. One after the other:
 * they mostly share a bus. A device that cannot be read goes without, and is then no boot medium.
 */
export async function withContent(
  devices: BlockDevices,
  listed: readonly DeviceFacts[],
  media: readonly BootMedium[],
  log: Pick<Log, 'warn'>,
): Promise<DeviceFacts[]> {
  const read: DeviceFacts[] = [];
  for (const device of listed) {
    const isRead = mayBeBootMedium(device, media);
    read.push(isRead ? await digested(devices, device, log) : device);
  }
  return read;
}

async function digested(
  devices: BlockDevices,
  device: DeviceFacts,
  log: Pick<Log, 'warn'>,
): Promise<DeviceFacts> {
  try {
    return { ...device, contentSha256: await contentOf(devices, device) };
  } catch (error) {
    log.warn({ device: device.name }, 'what may be a boot medium cannot be read', error);
    return device;
  }
}

async function contentOf(devices: BlockDevices, device: DeviceFacts): Promise<string> {
  const held = await devices.hold(device, 'read');
  try {
    const hash = createHash('sha256');
    for (const [index, region] of held.regions.entries()) {
      const sizeBytes = device.regions[index]?.sizeBytes ?? 0;
      for (let at = 0; at < sizeBytes; at += transferBytesMax) {
        hash.update(await region.read(at, Math.min(transferBytesMax, sizeBytes - at)));
      }
    }
    // Another medium may be in the reader by now.
    await held.confirm();
    return hash.digest('hex');
  } finally {
    await held.close();
  }
}
