/**
 * The storage of one machine, as the erasure steps see it. Implemented for real block devices
 * (`linux/devices.ts`) and for folders of raw files (`linux/file-disks.ts`).
 *
 * Invariants of every implementation:
 * B1 `list` names every device; nothing is left out because it looks odd.
 * B2 A device is held at most once and exclusively: another user makes `hold` fail, and nobody else
 *    can start to use it while it is held.
 * B3 Reads come from the device, never from a cache of ours or the kernel's.
 * B4 A rejected call rejects with `DeviceError`. Success of an erasing call proves nothing; the
 *    verdict does.
 * B5 A held device is opened once. Everything that is done to it goes through that opening. A
 *    device that takes its place, its name or its number is never written.
 */
import type { DeviceFacts, SelfErasure, StorageSign } from '@rackwright/erasure';

/**
 * Why a device is given up: it was unplugged or no longer answers, or its answers identify another
 * device.
 */
export type DeviceLoss = 'vanished' | 'changed';

/** The failed operation of a device, as evidence counts errors. */
export type DeviceOperation = 'read' | 'write' | 'flush' | 'tool';

/** The answer of a device, or of the program that drives it, instead of its work. */
export class DeviceError extends Error {
  override readonly name = 'DeviceError';
  /** Set when the device is lost: nothing more can be done to it. */
  readonly loss: DeviceLoss | undefined;
  /** The operation that failed on the device; undefined when it is none of these. */
  readonly operation: DeviceOperation | undefined;

  constructor(message: string, options: DeviceErrorOptions = {}) {
    super(message, options);
    this.loss = options.loss;
    this.operation = options.operation;
  }
}

interface DeviceErrorOptions {
  readonly cause?: unknown;
  readonly loss?: DeviceLoss;
  readonly operation?: DeviceOperation;
}

export interface DeviceListing {
  readonly devices: readonly DeviceFacts[];
  /** Storage that something other than a block device shows. */
  readonly signs: readonly StorageSign[];
}

/** The treatment of user data by NVMe format: Secure Erase Settings 1 and 2. */
export type NvmeEraseMode = 'userData' | 'crypto';

/** `read`: opened so that nothing can be written. */
export type DeviceAccess = 'read' | 'write';

export interface BlockDevices {
  list(): Promise<DeviceListing>;
  /**
   * Opens every region of the device, exclusively, and confirms that the opened device is the one
   * that `device` describes. Unless `access` says otherwise it can be written. Rejects with
   * `DeviceError`; `loss` is set when it is gone or another.
   */
  hold(device: DeviceFacts, access?: DeviceAccess): Promise<HeldDevice>;
  /**
   * Takes down the kernel's devices on a device that is not held. Resolves with their names: "md127
   * (raid1)". Rejects with a `DeviceError` that names the remaining one.
   */
  dismantle(device: DeviceFacts): Promise<string[]>;
  /**
   * Makes hidden capacity of a device addressable that is not held. It may have another kernel name
   * afterwards: list again. Resolves with a line for each action; rejects with `DeviceError`.
   */
  unhide(device: DeviceFacts): Promise<string[]>;
}

/** A format or a sanitize, which goes on inside the device when its caller has died. */
export interface OwnWork {
  readonly kind: 'running' | 'failed';
  readonly text: string;
}

/** One device, opened once and exclusively until it is closed. */
export interface HeldDevice {
  /** One for each of the device's regions, in their order. */
  readonly regions: readonly OpenRegion[];
  /**
   * Asks the device itself for its serial, name and size again, as far as a tool can, besides what
   * `present` does. Rejects with a `DeviceError` that has a `loss`.
   */
  confirm(): Promise<void>;
  /**
   * Asks the kernel alone whether the open device is still attached and the same: cheap enough to
   * be asked every few seconds. Rejects with a `DeviceError` that has a `loss`.
   */
  checkAttached(): Promise<void>;
  /**
   * Formats all namespaces of an NVMe controller. Cannot be stopped. Resolves with the tool's
   * output, line by line.
   */
  nvmeFormat(mode: NvmeEraseMode): Promise<string[]>;
  /**
   * Has the device erase itself by one of its methods, and waits for its end. Cannot be stopped.
   * Resolves with the tool's output, line by line.
   */
  eraseItself(method: SelfErasure): Promise<string[]>;
  /** The device's work of its own that still runs or has failed; undefined: none, or unreported. */
  ownWork(): Promise<OwnWork | undefined>;
  /** The device's own log, newest last; empty when it keeps none. */
  readLog(): Promise<string[]>;
  close(): Promise<void>;
}

/** Offsets and lengths are multiples of the region's logical block. */
export interface OpenRegion {
  /** The bytes are valid until the next call. At most `transferBytesMax`. One at a time. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /**
   * Fills `target`, which is in transfer memory. Several may be under way, each with memory of its
   * own. At most `streamBytesMax`.
   */
  readInto(offset: number, target: Uint8Array): Promise<void>;
  /**
   * At most `transferBytesMax`. Of bytes in transfer memory several writes may be under way; others
   * are copied, one write at a time.
   */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /** Writes zeros as ordinary data. At most `streamBytesMax`. Several may be under way. */
  writeZeros(offset: number, length: number): Promise<void>;
  /** Resolves with the tool's output, line by line. */
  discard(offset: number, length: number): Promise<string[]>;
  /**
   * Has the device make zeros in its best way, of any length. Absent: the device has none. Its
   * success proves nothing.
   */
  zeroOut?(offset: number, length: number): Promise<string[]>;
  /** Durable on the device when it resolves. */
  flush(): Promise<void>;
}

/** Largest single read or write, bytes. */
export const transferBytesMax = 1024 * 1024;
/** Largest transfer of a whole disk that is overwritten or read back, bytes. */
export const streamBytesMax = 4 * transferBytesMax;
