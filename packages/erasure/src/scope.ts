/**
 * Which devices a clean erases and how (DESIGN §5, Scope and Methods). Pure.
 *
 * Invariants:
 * S1 Every device gets exactly one decision; the answer has as many entries as the question.
 * S2 A device that cannot be erased or cannot be named is `refused`, which fails the step. Only
 *    devices that are not the host's own storage are `listed`, and each carries its reason.
 * S3 A method is chosen only among those that the device says it offers.
 */
import { type BootMedium, isBootMedium } from './boot-media.ts';
import { type DeviceFacts, deviceIdentity, type Transport } from './facts.ts';
import type { ErasureMethod } from './method.ts';
import {
  type ListedKind,
  type RefusalKind,
  refusalActions,
  securityErasePassword,
} from './refusal.ts';

/** Smallest region that the challenge can be laid out on: its first and its last block. */
export const regionBytesMin = 8192;

export interface ScopePolicy {
  /**
   * The decision about disks on USB. Such a disk may be a person's stick, or a card of the host's
   * own in a reader inside it: without a setting they are refused.
   */
  readonly usb: 'refuse' | 'erase' | 'leave';
  /** Media that the runner boots from; absent: none. */
  readonly bootMedia?: readonly BootMedium[];
  /** World wide names of remote devices (fibre channel, iSCSI, NVMe-oF) the plan names. */
  readonly eraseRemoteWwns: readonly string[];
  /** `strongest` takes the first of NVMe format, discard, overwrite that the device offers. */
  readonly method: 'strongest' | ErasureMethod;
  /** The decision about a disk that hides capacity; absent: `refuse`. */
  readonly hiddenAreas?: 'refuse' | 'remove';
}

export const defaultScopePolicy: ScopePolicy = {
  usb: 'refuse',
  eraseRemoteWwns: [],
  method: 'strongest',
};

/** For programs that write by an order: the order says which disks on USB are the host's own. */
export const orderedScopePolicy: ScopePolicy = { ...defaultScopePolicy, usb: 'leave' };

export type ScopeDecision =
  | {
      readonly kind: 'inScope';
      readonly device: DeviceFacts;
      readonly method: ErasureMethod;
      /** A RAID volume says nothing about the disks behind it, and neither does its certificate. */
      readonly certifiedAs: 'disk' | 'volume';
      /** Capacity that has to be made visible before the first write, bytes; 0: none. */
      readonly hiddenBytesToRemove: number;
    }
  | {
      readonly kind: 'listed';
      readonly device: DeviceFacts;
      readonly why: ListedKind;
      readonly reason: string;
    }
  | {
      readonly kind: 'refused';
      readonly device: DeviceFacts;
      readonly why: RefusalKind;
      /** Fits "the disk …". */
      readonly reason: string;
      /** The remedy. */
      readonly action: string;
    };

type Outside = readonly [ListedKind, string];
type DeviceRefusal = readonly [RefusalKind, string];

type MethodChoice =
  | { readonly kind: 'method'; readonly method: ErasureMethod }
  | { readonly kind: 'none'; readonly reason: string };

/** Decides over all devices at once, since two of them may be one device. */
export function decideScope(
  devices: readonly DeviceFacts[],
  policy: ScopePolicy = defaultScopePolicy,
): ScopeDecision[] {
  const outsides = devices.map((device) => reasonOutside(device, policy));
  const namesOf = new Map<string, string[]>();
  for (const [index, device] of devices.entries()) {
    // Each slot of a reader says the reader's serial number: an empty one is no second disk.
    if (outsides[index]?.[0] === 'emptyReader') continue;
    const identity = deviceIdentity(device);
    const names = namesOf.get(identity);
    if (names === undefined) namesOf.set(identity, [device.name]);
    else names.push(device.name);
  }
  return devices.map((device, index) => {
    const outside = outsides[index];
    if (outside !== undefined) {
      const [why, reason] = outside;
      return { kind: 'listed', device, why, reason };
    }
    const identity = deviceIdentity(device);
    const names = identity === '' ? [] : (namesOf.get(identity) ?? []);
    if (names.length > 1) return refused(device, ['twoPaths', reasonOfTwins(device, names)]);
    return decideOwnDevice(device, policy);
  });
}

/** Two paths to one disk, or two disks: both report the same identity. */
function reasonOfTwins({ name }: DeviceFacts, names: readonly string[]): string {
  const others = names.filter((other) => other !== name).slice(0, twinsNamedMax);
  return `(${name}) says of itself what ${others.join(', ')} says too`;
}

function refused(device: DeviceFacts, [why, reason]: DeviceRefusal): ScopeDecision {
  return { kind: 'refused', device, why, reason, action: refusalActions[why] };
}

function decideOwnDevice(device: DeviceFacts, policy: ScopePolicy): ScopeDecision {
  const isUnsaid = device.transport === 'usb' && policy.usb === 'refuse';
  if (isUnsaid) {
    const { contentSha256 } = device;
    const content = contentSha256 === undefined ? '' : `; its content has sha256 ${contentSha256}`;
    return refused(device, ['usb', `is on USB, and nobody says whose it is${content}`]);
  }
  const refusal = reasonToRefuse(device);
  if (refusal !== undefined) return refused(device, refusal);
  const choice = chooseMethod(device, policy.method);
  if (choice.kind === 'none') return refused(device, ['methodNotOffered', choice.reason]);
  const hidden =
    reasonOfSecurity(device, choice.method) ??
    reasonOfHiddenNamespaces(device, choice.method) ??
    reasonOfHiddenArea(device, policy, choice.method);
  if (hidden !== undefined) return refused(device, hidden);
  const certifiedAs = device.raidVolume ? 'volume' : 'disk';
  const hiddenBytesToRemove = hiddenBytes(device);
  return { kind: 'inScope', device, method: choice.method, certifiedAs, hiddenBytesToRemove };
}

/** Sanitize reaches all user data of the device, also beyond the addressable capacity. */
function isSanitize(method: ErasureMethod): boolean {
  switch (method) {
    case 'sanitizeCrypto':
    case 'sanitizeBlock':
    case 'sanitizeOverwrite':
      return true;
    case 'nvmeFormatCrypto':
    case 'nvmeFormat':
    case 'discard':
    case 'overwrite':
    case 'metadataOnly':
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      return false;
  }
}

/** An interrupted secure erase of ours leaves a disk with our password. */
const passwordNote = `, "${securityErasePassword}" if a secure erase of ours was interrupted`;

/** ACS-3 §4.18: a locked disk gives no access; a frozen one obeys no security command. */
function reasonOfSecurity(
  { sanitize }: DeviceFacts,
  method: ErasureMethod,
): DeviceRefusal | undefined {
  const isSecurity = method === 'ataSecurityErase' || method === 'ataEnhancedErase';
  switch (sanitize?.ataSecurity) {
    case undefined:
    case 'disabled':
      return undefined;
    case 'locked':
      return ['securityLocked', `is locked by an ATA password${passwordNote}`];
    case 'enabled':
      return isSecurity ? ['securityLocked', `has an ATA password${passwordNote}`] : undefined;
    case 'frozen':
      return isSecurity ? ['securityFrozen', 'has its ATA security frozen'] : undefined;
  }
}

/** An unseen namespace has data that nobody erases, unless the format reaches it too. */
function reasonOfHiddenNamespaces(
  { nvme }: DeviceFacts,
  method: ErasureMethod,
): DeviceRefusal | undefined {
  if (nvme === undefined) return undefined;
  const isFormat = method === 'nvmeFormat' || method === 'nvmeFormatCrypto';
  if (isSanitize(method) || (isFormat && nvme.formatsAllNamespaces)) return undefined;
  const hidden = nvme.hiddenNamespaces ?? [];
  if (hidden.length > 0) {
    const shown = hidden.slice(0, hiddenNamedMax).join(', ');
    const more =
      hidden.length > hiddenNamedMax ? ` and ${hidden.length - hiddenNamedMax} more` : '';
    return ['hiddenNamespaces', `has namespaces that are not attached (${shown}${more})`];
  }
  return nvme.namespacesUnlisted === true
    ? ['namespacesUnlisted', 'does not say which namespaces it has, so some may not be attached']
    : undefined;
}

/** Capacity that a device reports and that cannot be addressed, bytes. */
export function hiddenBytes({ capacity }: Pick<DeviceFacts, 'capacity'>): number {
  return capacity?.kind === 'examined' ? capacity.hostProtectedBytes + capacity.overlayBytes : 0;
}

/** Transports whose hidden areas ATA commands can remove; elsewhere a person has to. */
const removableHiddenAreas: ReadonlySet<Transport> = new Set(['sata', 'sas', 'usb']);

function reasonOfHiddenArea(
  device: DeviceFacts,
  policy: ScopePolicy,
  method: ErasureMethod,
): DeviceRefusal | undefined {
  const { capacity, transport } = device;
  // A sanitize of an NVMe subsystem also reaches blocks that are in no namespace (NVMe 2.0 §8.21).
  if (transport === 'nvme' && isSanitize(method)) return undefined;
  if (capacity?.kind !== 'examined' || hiddenBytes(device) === 0) return undefined;
  const isRemovable = removableHiddenAreas.has(transport);
  if (isRemovable && policy.hiddenAreas === 'remove') return undefined;
  const first = isRemovable ? 'a host protected area' : 'no addressable place';
  const areas = [
    [first, capacity.hostProtectedBytes] as const,
    ['a device configuration overlay', capacity.overlayBytes] as const,
  ];
  const named = areas
    .filter(([, bytes]) => bytes > 0)
    .map(([name, bytes]) => `${bytes} bytes in ${name}`);
  const reason = `hides ${named.join(' and ')} of its ${capacity.nativeBytes} bytes`;
  return [isRemovable ? 'hiddenArea' : 'fixedHiddenArea', reason];
}

/** Devices with the same identity that a refusal names. */
const twinsNamedMax = 4;
/** Hidden namespaces that a refusal names. */
const hiddenNamedMax = 16;

const neverOurs: Partial<Record<Transport, Outside>> = {
  multipath: ['multipath', 'a multipath device: other hosts may use the same disk'],
  virtualMedia: ['virtualMedia', 'virtual media of the BMC'],
  optical: ['optical', 'an optical drive'],
  // JESD84-B51 §6.2: separate from the user area, read-only to Linux, and the board boots from it.
  mmcBoot: [
    'bootPartition',
    'a boot partition of an eMMC device: it holds firmware of the board, not user data',
  ],
  kernel: ['kernelDevice', 'made by the kernel, without a medium of its own'],
};

/** BMCs' names of their virtual disks on USB: "Virtual Floppy", "Virtual HDisk0". */
const virtualOnUsb = /\bvirtual (?:floppy|cd|disk|hdisk|media)/iu;

/** Why a device is none of the host's own storage, or undefined when it is. */
function reasonOutside(device: DeviceFacts, policy: ScopePolicy): Outside | undefined {
  // Hidden capacity of a device was not read.
  if (isBootMedium(device, policy.bootMedia ?? []) && hiddenBytes(device) === 0) {
    return ['bootMedium', `our own boot medium (sha256 ${device.contentSha256})`];
  }
  const rule = neverOurs[device.transport];
  if (rule !== undefined) return rule;
  if (device.removable && device.regions.length === 0) {
    return ['emptyReader', 'a reader without a medium'];
  }
  if (device.transport === 'usb') {
    if (virtualOnUsb.test(device.model)) return neverOurs.virtualMedia;
    const left: Outside = ['usb', 'on USB, which the cleaning policy leaves alone'];
    return policy.usb === 'leave' ? left : undefined;
  }
  return device.transport in remoteNames ? reasonRemote(device, policy) : undefined;
}

const remoteNames: Partial<Record<Transport, string>> = {
  fibreChannel: 'fibre channel',
  iscsi: 'iSCSI',
  nvmeFabrics: 'NVMe over fabrics',
};

function reasonRemote(device: DeviceFacts, policy: ScopePolicy): Outside | undefined {
  if (device.wwn !== '' && policy.eraseRemoteWwns.includes(device.wwn)) return undefined;
  const by = remoteNames[device.transport] ?? device.transport;
  const wwn = device.wwn || '(it says none)';
  return ['remote', `remote (${by}), and the plan does not name its WWN ${wwn}`];
}

/** md arrays and device mapper (LVM, LUKS, multipath) are taken down before the first write. */
export function isDismantlable(holder: string): boolean {
  return /^(md\d+|dm-\d+)$/.test(holder);
}

const noNamespace: DeviceRefusal = ['noNamespace', 'has no namespace that could be erased'];
/** The kernel shows none of a disk that is not ready, or whose blocks it cannot use (520 bytes). */
const noCapacity: DeviceRefusal = [
  'noCapacity',
  'shows no capacity: its blocks are not of 512 or 4096 bytes, or it is at work, locked or broken',
];

function reasonToRefuse(device: DeviceFacts): DeviceRefusal | undefined {
  if (device.transport === 'unknown') {
    return ['unknownTransport', 'gives no sign of how it is attached'];
  }
  if (deviceIdentity(device) === '') {
    return ['unnamed', 'says neither a serial number nor a WWN, so no certificate could name it'];
  }
  if (device.readOnly) return ['readOnly', 'is read-only'];
  if (!device.holders.every(isDismantlable)) {
    return ['inUse', `is in use by ${device.holders.join(', ')}`];
  }
  if (device.regions.length === 0) {
    return device.nvme === undefined ? noCapacity : noNamespace;
  }
  for (const region of device.regions) {
    const unfit = reasonToRefuseRegion(region.name, region.sizeBytes, region.logicalBlockBytes);
    if (unfit !== undefined) return ['unfitRegion', unfit];
  }
  return undefined;
}

function reasonToRefuseRegion(
  name: string,
  sizeBytes: number,
  logicalBlockBytes: number,
): string | undefined {
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < regionBytesMin) {
    return `${name} has ${sizeBytes} bytes; at least ${regionBytesMin} are needed to verify it`;
  }
  if (logicalBlockBytes !== 512 && logicalBlockBytes !== 4096) {
    return `${name} has logical blocks of ${logicalBlockBytes} bytes; 512 or 4096 are supported`;
  }
  if (sizeBytes % logicalBlockBytes !== 0) {
    return `${name} has ${sizeBytes} bytes, which is no whole number of its logical blocks`;
  }
  return undefined;
}

/**
 * The method for one device: the strongest of the usual ones on offer, or the wanted one if it is
 * on offer.
 */
export function chooseMethod(device: DeviceFacts, wanted: ScopePolicy['method']): MethodChoice {
  const usual = methodsOffered(device);
  if (wanted === 'strongest') return { kind: 'method', method: usual[0] ?? 'overwrite' };
  const offered = [...usual, ...methodsOnRequest(device)];
  if (offered.includes(wanted)) return { kind: 'method', method: wanted };
  return {
    kind: 'none',
    reason: `does not offer ${wanted}; it offers ${offered.join(', ')}`,
  };
}

/**
 * The device's methods, strongest first; `metadataOnly` last: it is never chosen without a request.
 * A discard after which blocks may read as anything cannot be verified and is left out.
 */
export function methodsOffered(device: DeviceFacts): ErasureMethod[] {
  const offered: ErasureMethod[] = [];
  if (device.nvme?.formatSupported === true) {
    if (device.nvme.cryptoEraseSupported) offered.push('nvmeFormatCrypto');
    offered.push('nvmeFormat');
  }
  if (offersDiscard(device)) offered.push('discard');
  offered.push('overwrite', 'metadataOnly');
  return offered;
}

/** Further methods of the device, chosen only on request: not yet proven on a device. */
export function methodsOnRequest({ sanitize, raidVolume }: DeviceFacts): ErasureMethod[] {
  if (sanitize === undefined || raidVolume) return [];
  const offers: readonly (readonly [ErasureMethod, boolean])[] = [
    ['sanitizeCrypto', sanitize.cryptoScramble],
    ['sanitizeBlock', sanitize.blockErase],
    ['sanitizeOverwrite', sanitize.overwrite],
    ['ataEnhancedErase', sanitize.ataEnhancedErase],
    ['ataSecurityErase', sanitize.ataSecurityErase],
  ];
  return offers.filter(([, isOffered]) => isOffered).map(([method]) => method);
}

/** Cards and bridges to USB often leave 0xff or old data behind: they have to declare zeros. */
const discardMustDeclare: ReadonlySet<Transport> = new Set(['mmc', 'usb']);

function offersDiscard({ transport, discardSupported, discardZeroes }: DeviceFacts): boolean {
  if (!discardSupported || discardZeroes === false) return false;
  return discardZeroes === true || !discardMustDeclare.has(transport);
}
