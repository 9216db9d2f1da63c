/**
 * Prepares disks before an erase step holds them: takes down arrays and mappings on them, and makes
 * hidden capacity addressable where the order says so.
 *
 * Invariants:
 * P1 Only disks of the order are touched, and none in a check or by a step that only reads.
 * P2 The devices are listed again after a change; the following code decides by that list alone.
 */
import { type DeviceFacts, deviceIdentity, hiddenBytes, isDismantlable } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import {
  type BlockDevices,
  type DeviceAccess,
  DeviceError,
  type DeviceListing,
} from '../machine/block-devices.ts';

/** The preparation of one disk, for its outcome. */
export interface DiskPreparation {
  readonly dismantled: string[];
  readonly hiddenBytesRemoved: bigint;
}

export type PreparedDevice =
  | {
      readonly kind: 'ready';
      readonly listing: DeviceListing;
      /** By identity. */
      readonly done: ReadonlyMap<string, DiskPreparation>;
    }
  | { readonly kind: 'failed'; readonly message: string };

/** Every disk that cannot be prepared is named. */
export async function prepareDevices(
  devices: BlockDevices,
  order: agent.RunStep,
  access: DeviceAccess,
): Promise<PreparedDevice> {
  const listing = await devices.list();
  const done = new Map<string, DiskPreparation>();
  const isReadOnly = access === 'read' || order.mode === agent.StepMode.CHECK;
  if (isReadOnly) return { kind: 'ready', listing, done };
  const problems: string[] = [];
  for (const plan of order.devices) {
    if (plan.device === undefined) continue;
    const identity = deviceIdentity(plan.device);
    const found = listing.devices.filter((each) => deviceIdentity(each) === identity);
    const [device] = found;
    // The comparison of the order with the list reports a disk that is not exactly there.
    if (device === undefined || found.length > 1 || identity === '') continue;
    try {
      const preparation = await prepare(devices, device, plan.removeHiddenArea === true);
      if (preparation !== undefined) done.set(identity, preparation);
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      problems.push(`${identity} (${device.name}): ${error.message}`);
    }
  }
  if (problems.length > 0) return { kind: 'failed', message: problems.join('; ') };
  const after = done.size === 0 ? listing : await devices.list();
  return { kind: 'ready', listing: after, done };
}

async function prepare(
  devices: BlockDevices,
  device: DeviceFacts,
  removeHiddenArea: boolean,
): Promise<DiskPreparation | undefined> {
  const hasHolders = device.holders.length > 0 && device.holders.every(isDismantlable);
  const hidden = removeHiddenArea ? hiddenBytes(device) : 0;
  if (!hasHolders && hidden === 0) return undefined;
  const dismantled = hasHolders ? await devices.dismantle(device) : [];
  if (hidden > 0) await devices.unhide(device);
  return { dismantled, hiddenBytesRemoved: BigInt(hidden) };
}
