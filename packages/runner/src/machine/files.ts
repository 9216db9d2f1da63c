/**
 * Files that a step writes: below the runner's own root, or in a file system of one of the disks.
 * `linux/machine-files.ts` does it for real.
 */
import type { DeviceFacts } from '@rackwright/erasure';

/** Content and permission bits of one file. */
export interface FileContent {
  readonly content: Uint8Array;
  readonly mode: number;
}

/** A place that cannot be reached, or a file system that does not work as it should. */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/** The file systems that are mounted. */
export const filesystems = ['ext4', 'xfs', 'vfat'] as const;
export type Filesystem = (typeof filesystems)[number];

/** A partition of a disk, by its number. */
export interface NumberedPartition {
  readonly device: DeviceFacts;
  readonly partition: number;
  readonly filesystem: Filesystem;
}

export interface MachineFiles {
  /** Writes below the runner's own root, and returns the content that is read back. */
  writeHere(path: string, file: FileContent): Promise<FileContent>;
  /**
   * Writes into the partition, unmounts it, mounts it anew, and returns the content that is read
   * back. Absent on a machine whose disks hold no file systems.
   */
  writeOnDisk?(partition: NumberedPartition, path: string, file: FileContent): Promise<FileContent>;
}
