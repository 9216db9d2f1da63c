/** Whether the firmware of a host finds something to boot on a disk that was put together. Pure. */
import { ImageError } from '../failure.ts';
import type { FittedPartition, FittedTable } from './fit.ts';
import { partitionTypes } from './gpt.ts';
import { hasBootSignature } from './mbr.ts';

export type BootableFirmware = 'uefi' | 'bios';

/** Boot code in front of the table of the first sector, bytes. */
const bootCodeBytes = 440;

/** The partition that UEFI boots from. */
export function efiSystemPartition(fitted: FittedTable): FittedPartition | undefined {
  const type = fitted.kind === 'gpt' ? partitionTypes.efiSystem : 'ef';
  return fitted.partitions.find((each) => each.type === type);
}

/** Throws `ImageError` when this firmware certainly finds nothing to start. */
export function checkBootable(fitted: FittedTable, firmware: BootableFirmware): void {
  if (firmware === 'uefi') {
    if (efiSystemPartition(fitted) !== undefined) return;
    const problem = 'the host boots by UEFI, and the image has no EFI system partition';
    throw new ImageError('notBootable', problem);
  }
  const code = fitted.head.subarray(0, bootCodeBytes);
  if (hasBootSignature(fitted.head) && code.some((byte) => byte !== 0)) return;
  throw new ImageError('notBootable', 'the host boots by BIOS, and the image has no boot code');
}
