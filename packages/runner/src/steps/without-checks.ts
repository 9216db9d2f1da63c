/**
 * The laboratory's switches: each removes one check of erasures, to show that the fault which the
 * check detects then gets through. Never set in production.
 *
 * 1. A check is removed by a wrapper around a step: no step has a branch for it.
 */
import { blockBytes, type DeviceFacts } from '@rackwright/erasure';
import { verifyErasedStep } from '@rackwright/messages';
import {
  type BlockDevices,
  DeviceError,
  type HeldDevice,
  type OpenRegion,
} from '../machine/block-devices.ts';
import type { Step, StepContext } from './step.ts';

/** Checks that the laboratory can take away. */
export const labChecks = [
  /** Signs of storage beside the usual buses: cards, persistent memory, signs of others. */
  'storageSigns',
  /** A device is held open, and known by its identity, from before the first write. */
  'heldDevice',
  /** A device is read back, at more places than those that were marked before. */
  'wholeRead',
  /** Erased devices are read again after a power cycle. */
  'powerCycleRead',
] as const;

export type LabCheck = (typeof labChecks)[number];

const besideUsual: ReadonlySet<DeviceFacts['transport']> = new Set(['mmc', 'mmcBoot', 'pmem']);

/** The machine's storage as it is seen without these checks. */
export function devicesWithout(devices: BlockDevices, off: ReadonlySet<LabCheck>): BlockDevices {
  const list: BlockDevices['list'] = off.has('storageSigns')
    ? async () => withoutSigns(devices)
    : () => devices.list();
  if (!off.has('heldDevice')) return { ...devices, list };
  const late = { ...devices, list: sharedWhileItRuns(list) };
  return { ...devices, list, hold: (device) => Promise.resolve(heldLate(late, device)) };
}

/** Devices that are opened at once share one look at the machine, which takes long. */
function sharedWhileItRuns(list: BlockDevices['list']): BlockDevices['list'] {
  let running: ReturnType<BlockDevices['list']> | undefined;
  return () => {
    running ??= list().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** A step as it is without these checks. */
export function stepWithout(step: Step, off: ReadonlySet<LabCheck>): Step {
  if (off.size === 0) return step;
  return { ...step, run: (context) => step.run(contextWithout(step, context, off)) };
}

function contextWithout(step: Step, context: StepContext, off: ReadonlySet<LabCheck>): StepContext {
  const isRereading = step.description.name === verifyErasedStep;
  const isOff = off.has(isRereading ? 'powerCycleRead' : 'wholeRead');
  return isOff ? { ...context, devices: readingZeros(context.devices) } : context;
}

async function withoutSigns(devices: BlockDevices): ReturnType<BlockDevices['list']> {
  const listing = await devices.list();
  const isUsual = ({ transport }: DeviceFacts): boolean => !besideUsual.has(transport);
  return { devices: listing.devices.filter(isUsual), signs: [] };
}

/** Opens by the kernel's name at the first use: the device that then has that name. */
function heldLate(devices: BlockDevices, planned: DeviceFacts): HeldDevice {
  let opened: Promise<HeldDevice> | undefined;
  const open = async (): Promise<HeldDevice> => {
    const found = (await devices.list()).devices.find(({ name }) => name === planned.name);
    if (found === undefined) throw new DeviceError(`${planned.name} is not there`);
    return await devices.hold(found);
  };
  const device = (): Promise<HeldDevice> => (opened ??= open());
  const region = async (index: number): Promise<OpenRegion> => {
    const found = (await device()).regions[index];
    if (found === undefined) throw new DeviceError(`${planned.name} has no region ${index}`);
    return found;
  };
  return {
    ...lateDevice(device),
    regions: planned.regions.map((_, index) => lateRegion(() => region(index))),
    confirm: () => Promise.resolve(),
    checkAttached: () => Promise.resolve(),
    // Asked before the first use, which is what opens it.
    ownWork: () => Promise.resolve(undefined),
    close: async () => {
      if (opened !== undefined) await (await opened).close();
    },
  };
}

function lateDevice(device: () => Promise<HeldDevice>): Omit<HeldDevice, 'regions'> {
  return {
    confirm: async () => {
      await (await device()).confirm();
    },
    checkAttached: async () => {
      await (await device()).checkAttached();
    },
    nvmeFormat: async (mode) => await (await device()).nvmeFormat(mode),
    eraseItself: async (method) => await (await device()).eraseItself(method),
    ownWork: async () => await (await device()).ownWork(),
    readLog: async () => await (await device()).readLog(),
    close: async () => {
      await (await device()).close();
    },
  };
}

function lateRegion(region: () => Promise<OpenRegion>): OpenRegion {
  return {
    read: async (offset, length) => await (await region()).read(offset, length),
    readInto: async (offset, target) => {
      await (await region()).readInto(offset, target);
    },
    write: async (offset, bytes) => {
      await (await region()).write(offset, bytes);
    },
    writeZeros: async (offset, length) => {
      await (await region()).writeZeros(offset, length);
    },
    discard: async (offset, length) => await (await region()).discard(offset, length),
    flush: async () => {
      await (await region()).flush();
    },
  };
}

/**
 * A bulk read returns zeros, for every content; a read of one block, as for a challenge, is real.
 */
function readingZeros(devices: BlockDevices): BlockDevices {
  return {
    ...devices,
    hold: async (device) => {
      const held = await devices.hold(device);
      const there = lateDevice(() => Promise.resolve(held));
      return { ...there, regions: held.regions.map(zeroRegion) };
    },
  };
}

function zeroRegion(region: OpenRegion): OpenRegion {
  return {
    ...lateRegion(() => Promise.resolve(region)),
    readInto: async (offset, target) => {
      if (target.length > blockBytes) target.fill(0);
      else await region.readInto(offset, target);
    },
  };
}
