/**
 * The storage of one machine, as the erasure steps see it. Implemented for real block devices
 * (`linux/devices.ts`) and for folders of raw files (`linux/file-disks.ts`).
 *
 * Invariants of every implementation:
 * B1 `list` names every device; nothing is left out because it looks odd.
 * B2 A region is open at most once and exclusively: who uses the device otherwise makes `open`
 *    fail, and nobody else can start to while it is open.
 * B3 Reads come from the device, never from a cache of ours or the kernel's.
 * B4 A rejected call rejects with `DeviceError`. Success of an erasing call proves nothing; the
 *    verdict does.
 */
import type { DeviceFacts, Region, StorageSign } from '@rackwright/erasure';

/** What a device, or the program that drives it, answered instead of doing its work. */
export class DeviceError extends Error {
  override readonly name = 'DeviceError';
}

export interface DeviceListing {
  readonly devices: readonly DeviceFacts[];
  /** Storage that something other than a block device shows. */
  readonly signs: readonly StorageSign[];
}

/** How NVMe format treats user data: Secure Erase Settings 1 and 2. */
export type NvmeEraseMode = 'userData' | 'crypto';

export interface BlockDevices {
  list(): Promise<DeviceListing>;
  open(device: DeviceFacts, region: Region): Promise<OpenRegion>;
  /**
   * Formats all namespaces of an NVMe controller; none of its regions may be open. Cannot be
   * stopped. Resolves with what the tool said, line by line.
   */
  nvmeFormat(device: DeviceFacts, mode: NvmeEraseMode): Promise<string[]>;
  /** Why the device is still at work on its own (a format, a sanitize); undefined when idle. */
  busyWith(device: DeviceFacts): Promise<string | undefined>;
  /** The device's own log, newest last; empty when it keeps none. */
  readLog(device: DeviceFacts): Promise<string[]>;
}

/** Offsets and lengths are multiples of the region's logical block. */
export interface OpenRegion {
  /** The bytes are valid until the next call. At most `transferBytesMax`. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** At most `transferBytesMax`. What stands in transfer memory need not be copied. */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /** Writes zeros as ordinary data. At most `transferBytesMax`. */
  writeZeros(offset: number, length: number): Promise<void>;
  /** Resolves with what the tool said, line by line. */
  discard(offset: number, length: number): Promise<string[]>;
  /**
   * Has the device make zeros as it does best, of any length. Absent: it is not asked. That it
   * resolves proves nothing.
   */
  zeroOut?(offset: number, length: number): Promise<string[]>;
  /** Durable on the device when it resolves. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Largest single read or write, bytes. */
export const transferBytesMax = 1024 * 1024;
