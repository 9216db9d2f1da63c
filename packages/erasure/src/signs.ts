/**
 * Storage that something other than a block device shows, and the decision about it: a block device
 * accounts for it, a rule decides about it, or it is a gap that keeps the host from `available`
 * (DESIGN §5, Scope). Pure.
 *
 * Invariants:
 * G1 Every sign gets exactly one decision, and every kind of sign has a row in the table.
 * G2 Only storage that cannot hold data of a tenant is decided without a device.
 */
import { type DeviceFacts, deviceIdentity } from './facts.ts';

/** The source that shows it. `firmware`: tables of ACPI and SMBIOS. */
export type SignSource = 'kernel' | 'bus' | 'firmware' | 'bmc';

export type SignKind =
  | 'controllerWithoutDriver'
  | 'remappedDrive'
  | 'persistentMemory'
  | 'flashChip'
  | 'deviceWithoutBlocks'
  | 'replayProtected'
  | 'emptyReader'
  | 'drive';

export interface StorageSign {
  readonly source: SignSource;
  readonly kind: SignKind;
  /** The name from its source: "0000:00:17.0 (8086:2822)", "nmem0", "Drive 3". */
  readonly name: string;
  /** Empty when unreported; so is `serial`. */
  readonly model: string;
  readonly serial: string;
  /** 0 when unreported. */
  readonly sizeBytes: number;
  /** Details by which a person can find or remove it. */
  readonly detail: string;
  /** Kernel names of the devices that account for it. */
  readonly devices: readonly string[];
}

export type SignDecision =
  | {
      readonly kind: 'accounted';
      readonly sign: StorageSign;
      /** Identities of the devices that account for it, or kernel names where they have none. */
      readonly by: readonly string[];
    }
  | { readonly kind: 'decided'; readonly sign: StorageSign; readonly reason: string }
  | SignGap;

export interface SignGap {
  readonly kind: 'gap';
  readonly sign: StorageSign;
  /** Why its data may be there unseen. */
  readonly reason: string;
  /** The remedy. */
  readonly action: string;
}

/** The rule of a kind when no block device accounts for the sign. */
type Rule =
  | { readonly kind: 'decided'; readonly reason: string }
  | { readonly kind: 'gap'; readonly reason: string; readonly action: string };

const rules: Readonly<Record<SignKind, Rule>> = {
  controllerWithoutDriver: {
    kind: 'gap',
    reason: 'has no driver, so its disks are not seen',
    action: 'switch it off in the firmware setup, or take it out',
  },
  remappedDrive: {
    kind: 'gap',
    reason: 'is an NVMe drive that the chipset hides behind its SATA controller',
    action: 'set the SATA mode in the firmware setup from RAID or RST to AHCI',
  },
  persistentMemory: {
    kind: 'gap',
    reason: 'is persistent memory without a block device',
    action: 'give it a namespace in fsdax or raw mode in the firmware setup, or take it out',
  },
  flashChip: { kind: 'decided', reason: 'a flash chip of the board: firmware, not user data' },
  deviceWithoutBlocks: {
    kind: 'gap',
    reason: 'is on a storage bus and has no block device',
    action: 'look whether it is broken, locked or reserved by another host, or take it out',
  },
  replayProtected: {
    kind: 'decided',
    reason: 'replay-protected memory of an eMMC device: only the holder of its key writes there',
  },
  emptyReader: { kind: 'decided', reason: 'a reader without a medium' },
  drive: {
    kind: 'gap',
    reason: 'is listed by the BMC, and the runner sees no such disk',
    action: 'look whether it is broken, switched off, or behind a controller in RAID mode',
  },
};

/** One decision for each sign, in order. `devices` are all block devices of the inventory. */
export function decideSigns(
  signs: readonly StorageSign[],
  devices: readonly DeviceFacts[],
): SignDecision[] {
  return signs.map((sign) => {
    const by = devicesBehind(sign, devices);
    if (by.length > 0) return { kind: 'accounted', sign, by };
    const rule = rules[sign.kind];
    switch (rule.kind) {
      case 'decided':
        return { kind: 'decided', sign, reason: rule.reason };
      case 'gap':
        return { kind: 'gap', sign, reason: rule.reason, action: rule.action };
    }
  });
}

/** The signs that nothing accounts for and no rule decides about. */
export function signGaps(
  signs: readonly StorageSign[],
  devices: readonly DeviceFacts[],
): SignGap[] {
  return decideSigns(signs, devices).filter((decision) => decision.kind === 'gap');
}

/** One sentence: what it is, why that is a gap, and what fixes it. */
export function describeGap({ sign, reason, action }: SignGap): string {
  const facts = [sign.model, sign.serial, sign.detail].filter((each) => each !== '').join(', ');
  const named = facts === '' ? sign.name : `${sign.name} (${facts})`;
  return `${kindNames[sign.kind]} ${named} ${reason}: ${action}`;
}

const kindNames: Readonly<Record<SignKind, string>> = {
  controllerWithoutDriver: 'storage controller',
  remappedDrive: 'drive',
  persistentMemory: 'memory',
  flashChip: 'flash chip',
  deviceWithoutBlocks: 'device',
  replayProtected: 'memory block',
  emptyReader: 'reader',
  drive: 'drive',
};

/**
 * By the kernel names that the sign gives; for a drive of the BMC's list by a serial number that
 * exactly one device has. A part without a driver is shown by no other part.
 */
function devicesBehind(sign: StorageSign, devices: readonly DeviceFacts[]): string[] {
  const named = devices.filter(({ name }) => sign.devices.includes(name));
  if (named.length > 0) return named.map(nameOf);
  if (sign.kind !== 'drive' || sign.serial === '') return [];
  const same = devices.filter(({ serial }) => serial === sign.serial);
  return same.length === 1 ? same.map(nameOf) : [];
}

function nameOf(device: DeviceFacts): string {
  return deviceIdentity(device) || device.name;
}
