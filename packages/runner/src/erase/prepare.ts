/**
 * Prepares disks before an erase step holds them: takes down arrays and mappings on them, and makes
 * hidden capacity addressable where the order says so.
 *
 * Invariants:
 * P1 Only disks of the order are touched, and none in a check or by a step that only reads.
 * P2 Nothing is changed before the agent has said that the step may begin (R11).
 * P3 The devices are listed again after a change; the following code decides by that list alone.
 */
import { type DeviceFacts, deviceIdentity, hiddenBytes, isDismantlable } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import {
  type BlockDevices,
  type DeviceAccess,
  DeviceError,
  type DeviceListing,
} from '../machine/block-devices.ts';
import type { StepContext } from '../steps/step.ts';

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
  | {
      readonly kind: 'failed';
      readonly type: 'ioError' | 'cancelled';
      readonly message: string;
    };

/** A disk of the order that has to be prepared. */
interface UnpreparedDisk {
  readonly identity: string;
  readonly device: DeviceFacts;
  readonly hasHolders: boolean;
  /** Capacity to make addressable. */
  readonly hiddenBytes: number;
}

/**
 * Every disk that cannot be prepared is named. `listing`: the present devices, which the caller has
 * compared with the order.
 */
export async function prepareDevices(
  { devices, order, requestBegin }: Pick<StepContext, 'devices' | 'order' | 'requestBegin'>,
  listing: DeviceListing,
  access: DeviceAccess,
): Promise<PreparedDevice> {
  const done = new Map<string, DiskPreparation>();
  const isReadOnly = access === 'read' || order.mode === agent.StepMode.CHECK;
  const waiting = isReadOnly ? [] : order.devices.flatMap((plan) => unprepared(plan, listing));
  if (waiting.length === 0) return { kind: 'ready', listing, done };
  const begin = await requestBegin();
  if (begin.kind !== 'granted') {
    const message =
      begin.kind === 'over' ? `not begun: ${begin.reason}` : 'cancelled before it began';
    return { kind: 'failed', type: 'cancelled', message };
  }
  const problems: string[] = [];
  for (const disk of waiting) {
    try {
      done.set(disk.identity, await prepare(devices, disk));
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      problems.push(`${disk.identity} (${disk.device.name}): ${error.message}`);
    }
  }
  if (problems.length > 0) {
    return { kind: 'failed', type: 'ioError', message: problems.join('; ') };
  }
  return { kind: 'ready', listing: await devices.list(), done };
}

/** None when there is nothing to prepare. */
function unprepared(
  { device: planned, removeHiddenArea = false }: agent.DevicePlan,
  listing: DeviceListing,
): UnpreparedDisk[] {
  const identity = planned === undefined ? '' : deviceIdentity(planned);
  // A slot without a card says what its reader says.
  const found = listing.devices.filter(
    (each) => deviceIdentity(each) === identity && each.regions.length > 0,
  );
  const [device] = found;
  // The comparison of the order with the list reports a disk that is not exactly there.
  if (device === undefined || found.length > 1 || identity === '') return [];
  const hasHolders = device.holders.length > 0 && device.holders.every(isDismantlable);
  const hidden = removeHiddenArea ? hiddenBytes(device) : 0;
  if (!hasHolders && hidden === 0) return [];
  return [{ identity, device, hasHolders, hiddenBytes: hidden }];
}

async function prepare(
  devices: BlockDevices,
  { device, hasHolders, hiddenBytes: hidden }: UnpreparedDisk,
): Promise<DiskPreparation> {
  const dismantled = hasHolders ? await devices.dismantle(device) : [];
  if (hidden > 0) await devices.unhide(device);
  return { dismantled, hiddenBytesRemoved: BigInt(hidden) };
}
