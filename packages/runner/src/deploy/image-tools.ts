/** The machine's parts for putting an image onto a disk, besides its disks. */
import type {
  BootableFirmware,
  BootEntry,
  BootPosition,
  ByteFilter,
  ByteSource,
  ReadingLimits,
} from '@rackwright/disk-image';
import type { DeviceFacts } from '@rackwright/erasure';
import type { Architecture } from '@rackwright/oci';
import type { Hashes } from '@rackwright/platform';

export interface ImageTools {
  readonly architecture: Architecture;
  readonly unxz: ByteFilter;
  readonly hashes: Hashes;
  readonly limits: ReadingLimits;
  /** A file that is served at this URL. */
  sourceAt(url: string): ByteSource;
  /**
   * The firmware that started this machine; undefined: unknown, and images are not checked for it.
   */
  firmware(): Promise<BootableFirmware | undefined>;
  /** Lets the kernel read the disk's present content. Rejects with `DeviceError`. */
  settle(device: DeviceFacts): Promise<void>;
  /**
   * Puts this entry into UEFI's boot order; answers its name. Rejects with `DeviceError` or
   * `ImageError`.
   */
  addBootEntry(entry: BootEntry, position: BootPosition): Promise<string>;
}
