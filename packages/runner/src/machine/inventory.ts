/** The parts of the machine, as one message. Takes facts, decides nothing about them. */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type BootMedium, storageDeviceOf, storageSignToWire } from '@rackwright/erasure';
import { type Inventory, InventorySchema, type RunnerSessionId } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import type { BlockDevices } from './block-devices.ts';
import { withContent } from './boot-media.ts';
import type { Machine } from './machine.ts';

/** Entries of each list of an inventory. */
export const inventoryEntriesMax = 256;
/** The size of the whole inventory: it is stored as one record. */
export const inventoryBytesMax = 160 * 1024;

/** The machine has more than an inventory holds; nothing is left out silently. */
export class InventoryTooLarge extends Error {
  override readonly name = 'InventoryTooLarge';
}

/** The order of an inspection. */
export interface InventoryOrder {
  /** The session that the agent gave. */
  readonly runnerSession: RunnerSessionId;
  /** Devices that may be one of these are read whole. */
  readonly bootMedia: readonly BootMedium[];
  readonly log: Pick<Log, 'warn'>;
}

/** `nowMs` is wall time. Rejects with `InventoryTooLarge`. */
export async function takeInventory(
  machine: Machine,
  devices: BlockDevices,
  nowMs: number,
  { runnerSession, bootMedia, log }: InventoryOrder,
): Promise<Inventory> {
  const [system, hardware, bootId, listing] = await Promise.all([
    machine.identity(),
    machine.hardware(),
    machine.bootId(),
    devices.list(),
  ]);
  const listed = await withContent(devices, listing.devices, bootMedia, log);
  const inventory = create(InventorySchema, {
    collectedAt: timestampFromMs(nowMs),
    system,
    cpus: hardware.cpus,
    memoryBytes: hardware.memoryBytes,
    devices: listed.map(storageDeviceOf),
    interfaces: hardware.interfaces,
    memoryModules: hardware.memoryModules ?? [],
    firmware: hardware.firmware ?? [],
    runnerSession,
    bootId,
    storageSigns: listing.signs.map(storageSignToWire),
  });
  mustFit(inventory);
  return inventory;
}

function mustFit(inventory: Inventory): void {
  const { devices, interfaces, cpus, storageSigns, memoryModules } = inventory;
  const lists = { 'block devices': devices, 'network cards': interfaces, processors: cpus };
  const all = {
    ...{ ...lists, 'other signs of storage': storageSigns },
    'memory modules': memoryModules,
  };
  for (const [kind, { length }] of Object.entries(all)) {
    if (length <= inventoryEntriesMax) continue;
    throw new InventoryTooLarge(
      `the machine has ${length} ${kind}; at most ${inventoryEntriesMax} are supported`,
    );
  }
  const { length } = toBinary(InventorySchema, inventory);
  if (length <= inventoryBytesMax) return;
  throw new InventoryTooLarge(
    `the inventory has ${length} bytes; at most ${inventoryBytesMax} are supported: ` +
      'look for disks with very many partitions or namespaces',
  );
}
