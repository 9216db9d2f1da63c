/**
 * What is known about one storage device before anything is decided about it. Gathered by the
 * runner (sysfs, nvme-cli) or written by hand for file disks; this package only judges it.
 */

/** How the device is reached. Everything but `local` transports is listed and never touched. */
export type Transport =
  | 'sata'
  | 'nvme'
  | 'sas'
  | 'virtio'
  | 'mmc'
  | 'mmcBoot'
  | 'usb'
  | 'fibreChannel'
  | 'iscsi'
  | 'nvmeFabrics'
  | 'multipath'
  | 'virtualMedia'
  | 'optical'
  | 'kernel'
  | 'unknown';

export const transports: readonly Transport[] = [
  'sata',
  'nvme',
  'sas',
  'virtio',
  'mmc',
  'mmcBoot',
  'usb',
  'fibreChannel',
  'iscsi',
  'nvmeFabrics',
  'multipath',
  'virtualMedia',
  'optical',
  'kernel',
  'unknown',
];

/** One addressable range of blocks: a whole disk, or one namespace of an NVMe controller. */
export interface Region {
  /** Kernel name, like `sda` or `nvme0n1`. */
  readonly name: string;
  /** Usable size; a safe integer. */
  readonly sizeBytes: number;
  /** Smallest unit of direct access: 512 or 4096. */
  readonly logicalBlockBytes: number;
  /** Only whole units of this size are discarded; what is left at the end keeps its content. */
  readonly discardGranularityBytes?: number;
}

/** What an NVMe controller says about erasing itself (NVMe base specification, Identify). */
export interface NvmeFacts {
  /** OACS bit 1: the Format NVM command exists. */
  readonly formatSupported: boolean;
  /** FNA bit 2: cryptographic erase is offered as part of Format NVM. */
  readonly cryptoEraseSupported: boolean;
  /** FNA bit 1: a secure erase by format reaches all namespaces, attached or not. */
  readonly formatsAllNamespaces: boolean;
  /** DLFEAT: the byte that deallocated blocks are declared to read as, when it is declared. */
  readonly deallocatedByte?: 0x00 | 0xff;
  /** Ids of namespaces without a block device here: detached, or of a kind the kernel skips. */
  readonly hiddenNamespaces?: readonly number[];
  /** True when it manages namespaces (OACS bit 3) and does not say which ones there are. */
  readonly namespacesUnlisted?: boolean;
  /** UNVMCAP: capacity of no namespace; it cannot be addressed, so nothing reads or erases it. */
  readonly unallocatedBytes?: number;
}

/** A partition inside a region, used by metadata erasure only. */
export interface Partition {
  readonly region: string;
  readonly offsetBytes: number;
  readonly sizeBytes: number;
}

export interface DeviceFacts {
  /** Kernel name of the disk or of the NVMe controller, like `sda` or `nvme0`. */
  readonly name: string;
  readonly transport: Transport;
  /** Empty when the device does not say. */
  readonly model: string;
  /** Empty when the device does not say. */
  readonly serial: string;
  /** World wide name or NVMe unique identifier; empty when the device does not say. */
  readonly wwn: string;
  readonly firmware: string;
  /** Sum over all regions. */
  readonly sizeBytes: number;
  readonly rotational: boolean;
  readonly removable: boolean;
  readonly readOnly: boolean;
  readonly discardSupported: boolean;
  /**
   * Whether the device declares that discarded blocks read as zero (ATA: DZAT, SCSI: LBPRZ, NVMe:
   * DLFEAT). Undefined when nothing says so either way, as for virtio: then the verdict tells.
   */
  readonly discardZeroes?: boolean;
  /** A logical volume of a RAID controller: the disks behind it are not seen. */
  readonly raidVolume: boolean;
  /** Who uses the device now (mounts, device mapper, swap); empty when nobody does. */
  readonly holders: readonly string[];
  readonly regions: readonly Region[];
  readonly partitions: readonly Partition[];
  readonly nvme?: NvmeFacts;
  /** Its names under /dev/disk/by-path, by the place where it is plugged in. Not in inventories. */
  readonly paths?: readonly string[];
}

/**
 * The name under which results, plans and certificates speak of a device. Serial first, because
 * people find disks by it; the kernel name is never used, for it changes between boots. Empty
 * when the device says neither, and such a device is refused.
 */
export function deviceIdentity(facts: Pick<DeviceFacts, 'serial' | 'wwn'>): string {
  return facts.serial !== '' ? facts.serial : facts.wwn;
}
