/** Disks of a machine that is on made slow, and quick again. */
import { until } from './processes.ts';
import type { LabMachine } from './qemu.ts';
import type { LabDisk } from './qemu-disks.ts';
import { tellQemu } from './qmp-command.ts';

/** What a socket answers when no QEMU listens on it. */
const OFF = new Set(['ENOENT', 'ECONNREFUSED']);

/**
 * Limits what is written to each disk of the machine, in bytes per second; 0 takes the limit away.
 * Rejects when the machine is off. QEMU forgets the limit at power-off.
 */
export async function limitWrites(machine: LabMachine, bytesPerSecond: number): Promise<void> {
  const limits = { bps: 0, bps_rd: 0, bps_wr: bytesPerSecond, iops: 0, iops_rd: 0, iops_wr: 0 };
  const commands = machine.disks.map((disk) => {
    return { execute: 'block_set_io_throttle', arguments: { id: ownerOfNode(disk), ...limits } };
  });
  await tellQemu(machine, commands);
}

/** The device that holds the disk's node: a virtio disk is a part of its PCI device. */
function ownerOfNode({ name, bus }: LabDisk): string {
  return bus === 'virtio' ? `/machine/peripheral/${name}-device/virtio-backend` : `${name}-device`;
}

/** Waits for the machine to be on, and limits it then. */
export async function limitWritesOnceOn(
  machine: LabMachine,
  bytesPerSecond: number,
  waitMs: number,
): Promise<void> {
  await until(`${machine.name} is on`, waitMs, async () => {
    try {
      await limitWrites(machine, bytesPerSecond);
      return true;
    } catch (error) {
      if (OFF.has((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  });
}
