/** What the machine is made of, as one message. Takes facts, decides nothing. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Inventory, InventorySchema } from '@rackwright/api';
import { storageDeviceOf } from '@rackwright/erasure';
import type { BlockDevices } from './block-devices.ts';
import type { Machine } from './machine.ts';

/** `nowMs` is wall time; `runnerSession` is the one that the agent gave. */
export async function takeInventory(
  machine: Machine,
  devices: BlockDevices,
  nowMs: number,
  runnerSession: string,
): Promise<Inventory> {
  const [system, hardware, bootId, listing] = await Promise.all([
    machine.identity(),
    machine.hardware(),
    machine.bootId(),
    devices.list(),
  ]);
  return create(InventorySchema, {
    collectedAt: timestampFromMs(nowMs),
    system,
    cpus: hardware.cpus,
    memoryBytes: hardware.memoryBytes,
    devices: listing.devices.map(storageDeviceOf),
    interfaces: hardware.interfaces,
    runnerSession,
    bootId,
    undrivenStorage: [...listing.undriven],
  });
}
