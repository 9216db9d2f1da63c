/** File disks of software machines, filled with a pattern that a clean has to remove. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DiskPlan {
  readonly name: string;
  readonly serial: string;
  /** The methods that erase it: by discard, by overwriting only, or by NVMe format. */
  readonly kind: 'discard' | 'overwrite' | 'format';
  readonly model?: string;
  /** A multiple of 4 KiB; `diskBytes` when unset. */
  readonly sizeBytes?: number;
  /** Write-protected, as a switch or the controller makes it. */
  readonly readOnly?: boolean;
  /** In the form that the runner's file disks read. */
  readonly faults?: readonly object[];
  /** Successes that are none, as the runner's file disks read them. */
  readonly lies?: readonly object[];
}

/** The default size of a disk. */
export const diskBytes = 2 * 1024 * 1024;
const blockBytes = 4_096;
const tableBytes = 1024 * 1024;

/** In bytes. */
export function sizeOfDisk({ sizeBytes = diskBytes }: DiskPlan): number {
  return sizeBytes;
}

/** Makes the disk below the machine's folder. */
export function makeDisk(machineFolder: string, disk: DiskPlan): void {
  const folder = join(machineFolder, 'disks');
  mkdirSync(folder, { recursive: true });
  describeDisk(machineFolder, disk);
  const image = Buffer.alloc(sizeOfDisk(disk));
  for (let offset = 0; offset < image.length; offset += blockBytes) {
    patternOf(disk.serial, offset).copy(image, offset);
  }
  writeFileSync(join(folder, `${regionOf(disk)}.img`), image);
}

/** Writes only the disk's description: its reported facts, and its faults from now on. */
export function describeDisk(machineFolder: string, disk: DiskPlan): void {
  const { name, serial, kind, model, readOnly = false, faults = [], lies = [] } = disk;
  const format = kind === 'format';
  const description = {
    transport: format ? 'nvme' : 'virtio',
    serial,
    ...(model === undefined ? {} : { model }),
    readOnly,
    discardSupported: kind === 'discard',
    regions: [{ name: regionOf(disk) }],
    ...(format ? { nvme: { formatSupported: true } } : {}),
    faults,
    lies,
  };
  writeFileSync(join(machineFolder, 'disks', `${name}.json`), JSON.stringify(description));
}

/** Whether any block of the disk still holds its pattern, as read from outside. */
export function holdsPattern(machineFolder: string, disk: DiskPlan): boolean {
  const image = readFileSync(join(machineFolder, 'disks', `${regionOf(disk)}.img`));
  for (let offset = 0; offset < image.length; offset += blockBytes) {
    const pattern = patternOf(disk.serial, offset);
    if (image.subarray(offset, offset + blockBytes).equals(pattern)) return true;
  }
  return false;
}

/**
 * Whether the disk holds a raw image from the end of its first MiB on, as read from outside. The
 * first MiB has the partition table, which is made to fit each disk.
 */
export function holdsImage(machineFolder: string, disk: DiskPlan, image: Buffer): boolean {
  const content = readFileSync(join(machineFolder, 'disks', `${regionOf(disk)}.img`));
  return content.subarray(tableBytes, image.length).equals(image.subarray(tableBytes));
}

function regionOf({ name, kind }: DiskPlan): string {
  return kind === 'format' ? `${name}n1` : name;
}

/** The content of a block before any clean: different in every block of every disk. */
function patternOf(serial: string, offset: number): Buffer {
  const digest = createHash('sha256').update(`pattern ${serial} ${offset}`).digest();
  return Buffer.alloc(blockBytes, digest);
}
