/**
 * The known facts about one storage device before any decision about it. Gathered by the runner
 * (sysfs, nvme-cli) or written by hand for file disks; this package only judges them.
 */

/** The device's connection. Everything but `local` transports is listed and never touched. */
export type Transport =
  | 'sata'
  | 'nvme'
  | 'sas'
  | 'virtio'
  | 'mmc'
  | 'mmcBoot'
  | 'pmem'
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
  'pmem',
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
  /** Only whole units of this size are discarded; the rest at the end keeps its content. */
  readonly discardGranularityBytes?: number;
  /**
   * The kernel's number of this attachment of a disk, counted since its start: another disk in the
   * same place has another number. Unset where the kernel does not count. Not in inventories.
   */
  readonly attachment?: number;
}

/** An NVMe controller's report about its erase commands (NVMe base specification, Identify). */
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
  /** True when it manages namespaces (OACS bit 3) and does not list them. */
  readonly namespacesUnlisted?: boolean;
  /** UNVMCAP: capacity of no namespace; it cannot be addressed, so nothing reads or erases it. */
  readonly unallocatedBytes?: number;
}

/** The storage medium. */
export type MediaType = 'hdd' | 'ssd' | 'flashCard' | 'persistentMemory' | 'optical' | 'virtual';

export const mediaTypes: readonly MediaType[] = [
  'hdd',
  'ssd',
  'flashCard',
  'persistentMemory',
  'optical',
  'virtual',
];

/** A device's report of capacity beyond its addressable capacity. */
export type CapacityFacts =
  | {
      readonly kind: 'examined';
      /** The device's own answer: READ NATIVE MAX ADDRESS EXT, READ CAPACITY(16), TNVMCAP. */
      readonly nativeBytes: number;
      /** The part behind a host protected area or an accessible max address. */
      readonly hostProtectedBytes: number;
      /** Hidden by a device configuration overlay. */
      readonly overlayBytes: number;
      /** Why the device's overlays are unknown: it has some and does not say what they hide. */
      readonly overlayUnknown?: string;
    }
  | { readonly kind: 'notExamined'; readonly reason: string };

/** `fixedOn`: it is on, and the device gives no way to switch it off. */
export type WriteCache = 'none' | 'on' | 'off' | 'fixedOn';

/** A device's report of its own health; missing values are left out. */
export interface HealthFacts {
  readonly passed?: boolean;
  readonly powerOnHours?: number;
  readonly reallocatedSectors?: number;
  readonly pendingSectors?: number;
  readonly mediaErrors?: number;
  /** NVMe: percentage used; may exceed 100. */
  readonly percentUsed?: number;
  readonly temperatureCelsius?: number;
}

/** ATA security (ACS-3 §4.18): the state that decides whether SECURITY ERASE UNIT is obeyed. */
export type SecurityState = 'disabled' | 'frozen' | 'locked' | 'enabled';

/** A device's own erase commands, beside NVMe format. */
export interface SanitizeFacts {
  readonly blockErase: boolean;
  readonly cryptoScramble: boolean;
  readonly overwrite: boolean;
  readonly ataSecurityErase: boolean;
  readonly ataEnhancedErase: boolean;
  /** Absent: the device has no ATA security. */
  readonly ataSecurity?: SecurityState;
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
  /** Empty when unreported. */
  readonly model: string;
  /** Empty when unreported. */
  readonly serial: string;
  /** World wide name or NVMe unique identifier; empty when unreported. */
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
   * DLFEAT). Undefined when it declares neither, as for virtio: then the verdict decides.
   */
  readonly discardZeroes?: boolean;
  /** A logical volume of a RAID controller: the disks behind it are not seen. */
  readonly raidVolume: boolean;
  /** Present users of the device (mounts, device mapper, swap); empty when there is none. */
  readonly holders: readonly string[];
  readonly regions: readonly Region[];
  readonly partitions: readonly Partition[];
  readonly nvme?: NvmeFacts;
  readonly manufacturer?: string;
  /** Absent: unknown. */
  readonly mediaType?: MediaType;
  /** Absent: in evidence of a runner of the previous release, which did not ask devices. */
  readonly capacity?: CapacityFacts;
  /** Absent: unreported. */
  readonly writeCache?: WriteCache;
  readonly health?: HealthFacts;
  readonly sanitize?: SanitizeFacts;
  /**
   * SHA-256 of its whole content, hex; only of a device whose size may be that of a boot medium.
   */
  readonly contentSha256?: string;
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
