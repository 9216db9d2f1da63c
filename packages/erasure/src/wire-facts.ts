/**
 * Wire messages ↔ facts of devices and signs of storage. Both directions are total: a value without
 * an equivalent becomes one that is refused later, never one that passes (R8).
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type CapacityFactsSchema,
  type DeviceHealth,
  type DeviceHealthSchema,
  type Inventory,
  type SanitizeFactsSchema,
  type StorageDevice,
  type StorageDeviceSchema,
  StorageSignKind,
  type StorageSignSchema,
  StorageSource,
  MediaType as WireMediaType,
  SecurityState as WireSecurityState,
  WriteCache as WireWriteCache,
} from '@rackwright/messages';
import type {
  CapacityFacts,
  DeviceFacts,
  HealthFacts,
  MediaType,
  SanitizeFacts,
  SecurityState,
  WriteCache,
} from './facts.ts';
import type { SignKind, SignSource, StorageSign } from './signs.ts';

const mediaTypesOnWire: Readonly<Record<MediaType, WireMediaType>> = {
  hdd: WireMediaType.HDD,
  ssd: WireMediaType.SSD,
  flashCard: WireMediaType.FLASH_CARD,
  persistentMemory: WireMediaType.PERSISTENT_MEMORY,
  optical: WireMediaType.OPTICAL,
  virtual: WireMediaType.VIRTUAL,
};

const writeCachesOnWire: Readonly<Record<WriteCache, WireWriteCache>> = {
  none: WireWriteCache.NONE,
  on: WireWriteCache.ON,
  off: WireWriteCache.OFF,
  fixedOn: WireWriteCache.FIXED_ON,
};

const securityStatesOnWire: Readonly<Record<SecurityState, WireSecurityState>> = {
  disabled: WireSecurityState.DISABLED,
  frozen: WireSecurityState.FROZEN,
  locked: WireSecurityState.LOCKED,
  enabled: WireSecurityState.ENABLED,
};

const sourcesOnWire: Readonly<Record<SignSource, StorageSource>> = {
  kernel: StorageSource.KERNEL,
  bus: StorageSource.BUS,
  firmware: StorageSource.FIRMWARE,
  bmc: StorageSource.BMC,
};

const kindsOnWire: Readonly<Record<SignKind, StorageSignKind>> = {
  controllerWithoutDriver: StorageSignKind.CONTROLLER_WITHOUT_DRIVER,
  remappedDrive: StorageSignKind.REMAPPED_DRIVE,
  persistentMemory: StorageSignKind.PERSISTENT_MEMORY,
  flashChip: StorageSignKind.FLASH_CHIP,
  deviceWithoutBlocks: StorageSignKind.DEVICE_WITHOUT_BLOCKS,
  replayProtected: StorageSignKind.REPLAY_PROTECTED,
  emptyReader: StorageSignKind.EMPTY_READER,
  drive: StorageSignKind.DRIVE,
};

type AddedFacts = Pick<
  DeviceFacts,
  'manufacturer' | 'mediaType' | 'capacity' | 'writeCache' | 'health' | 'sanitize' | 'contentSha256'
>;
type AddedFields = Pick<
  MessageInitShape<typeof StorageDeviceSchema>,
  'manufacturer' | 'mediaType' | 'capacity' | 'writeCache' | 'health' | 'sanitize' | 'contentSha256'
>;

export function addedFactsOf(device: StorageDevice): AddedFacts {
  const mediaType = nameOf(mediaTypesOnWire, device.mediaType);
  const writeCache = nameOf(writeCachesOnWire, device.writeCache);
  const { capacity, sanitize, health, manufacturer, contentSha256 } = device;
  return {
    ...(manufacturer === '' ? {} : { manufacturer }),
    ...(mediaType === undefined ? {} : { mediaType }),
    ...(capacity === undefined ? {} : { capacity: capacityOf(capacity) }),
    ...(writeCache === undefined ? {} : { writeCache }),
    ...(health === undefined ? {} : { health: healthOf(health) }),
    ...(sanitize === undefined ? {} : { sanitize: sanitizeOf(sanitize) }),
    ...(isDigest(contentSha256) ? { contentSha256 } : {}),
  };
}

/** SHA-256, hex: an agent can send any text here. */
function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

export function addedFieldsOf(facts: AddedFacts): AddedFields {
  const { manufacturer, mediaType, capacity, writeCache, health, sanitize, contentSha256 } = facts;
  return {
    ...(manufacturer === undefined ? {} : { manufacturer }),
    ...(mediaType === undefined ? {} : { mediaType: mediaTypesOnWire[mediaType] }),
    ...(capacity === undefined ? {} : { capacity: capacityOnWire(capacity) }),
    ...(writeCache === undefined ? {} : { writeCache: writeCachesOnWire[writeCache] }),
    ...(health === undefined ? {} : { health: healthOnWire(health) }),
    ...(sanitize === undefined ? {} : { sanitize: sanitizeOnWire(sanitize) }),
    ...(contentSha256 === undefined ? {} : { contentSha256 }),
  };
}

function capacityOf(capacity: NonNullable<StorageDevice['capacity']>): CapacityFacts {
  return capacity.examined
    ? {
        kind: 'examined',
        nativeBytes: Number(capacity.nativeBytes),
        hostProtectedBytes: Number(capacity.hostProtectedBytes),
        overlayBytes: Number(capacity.overlayBytes),
        ...(capacity.notExaminedReason === ''
          ? {}
          : { overlayUnknown: capacity.notExaminedReason }),
      }
    : { kind: 'notExamined', reason: capacity.notExaminedReason };
}

function capacityOnWire(facts: CapacityFacts): MessageInitShape<typeof CapacityFactsSchema> {
  switch (facts.kind) {
    case 'notExamined':
      return { notExaminedReason: facts.reason };
    case 'examined':
      return {
        examined: true,
        nativeBytes: BigInt(facts.nativeBytes),
        hostProtectedBytes: BigInt(facts.hostProtectedBytes),
        overlayBytes: BigInt(facts.overlayBytes),
        ...(facts.overlayUnknown === undefined ? {} : { notExaminedReason: facts.overlayUnknown }),
      };
  }
}

/** Counters beyond 2^53 lose their last digits, which no reader of a health log misses. */
export function healthOf(health: DeviceHealth): HealthFacts {
  const counters = {
    powerOnHours: health.powerOnHours,
    reallocatedSectors: health.reallocatedSectors,
    pendingSectors: health.pendingSectors,
    mediaErrors: health.mediaErrors,
  };
  const counted = Object.entries(counters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Number(value)]],
  );
  return {
    ...(Object.fromEntries(counted) as HealthFacts),
    ...(health.passed === undefined ? {} : { passed: health.passed }),
    ...(health.percentUsed === undefined ? {} : { percentUsed: health.percentUsed }),
    ...(health.temperatureCelsius === undefined
      ? {}
      : { temperatureCelsius: health.temperatureCelsius }),
  };
}

export function healthOnWire(facts: HealthFacts): MessageInitShape<typeof DeviceHealthSchema> {
  const { powerOnHours, reallocatedSectors, pendingSectors, mediaErrors, ...rest } = facts;
  return {
    ...rest,
    ...(powerOnHours === undefined ? {} : { powerOnHours: BigInt(powerOnHours) }),
    ...(reallocatedSectors === undefined ? {} : { reallocatedSectors: BigInt(reallocatedSectors) }),
    ...(pendingSectors === undefined ? {} : { pendingSectors: BigInt(pendingSectors) }),
    ...(mediaErrors === undefined ? {} : { mediaErrors: BigInt(mediaErrors) }),
  };
}

function sanitizeOf(sanitize: NonNullable<StorageDevice['sanitize']>): SanitizeFacts {
  const { blockErase, cryptoScramble, overwrite, ataSecurityErase, ataEnhancedErase } = sanitize;
  const ataSecurity = nameOf(securityStatesOnWire, sanitize.ataSecurity);
  return {
    ...{ blockErase, cryptoScramble, overwrite, ataSecurityErase, ataEnhancedErase },
    ...(ataSecurity === undefined ? {} : { ataSecurity }),
  };
}

function sanitizeOnWire(facts: SanitizeFacts): MessageInitShape<typeof SanitizeFactsSchema> {
  const { ataSecurity, ...rest } = facts;
  return {
    ...rest,
    ...(ataSecurity === undefined ? {} : { ataSecurity: securityStatesOnWire[ataSecurity] }),
  };
}

/**
 * The signs of an inventory. A kind of a newer version counts as an unknown device. So do the
 * controllers without a driver that a runner of the previous release lists by themselves.
 */
export function storageSignsOf(
  inventory: Pick<Inventory, 'storageSigns' | 'undrivenStorage'>,
): StorageSign[] {
  const older = inventory.undrivenStorage.map((name) => controllerWithoutDriver(name));
  const signs = inventory.storageSigns.map(
    (sign): StorageSign => ({
      source: nameOf(sourcesOnWire, sign.source) ?? 'kernel',
      kind: nameOf(kindsOnWire, sign.kind) ?? 'deviceWithoutBlocks',
      name: sign.name,
      model: sign.model,
      serial: sign.serial,
      sizeBytes: Number(sign.sizeBytes),
      detail: sign.detail,
      devices: sign.devices,
    }),
  );
  return [...older, ...signs];
}

function controllerWithoutDriver(name: string): StorageSign {
  const nothing = { model: '', serial: '', sizeBytes: 0, detail: '', devices: [] };
  return { source: 'bus', kind: 'controllerWithoutDriver', name, ...nothing };
}

export function storageSignToWire(sign: StorageSign): MessageInitShape<typeof StorageSignSchema> {
  return {
    source: sourcesOnWire[sign.source],
    kind: kindsOnWire[sign.kind],
    name: sign.name,
    model: sign.model,
    serial: sign.serial,
    sizeBytes: BigInt(sign.sizeBytes),
    detail: sign.detail,
    devices: [...sign.devices],
  };
}

function nameOf<Name extends string, Value>(
  table: Readonly<Record<Name, Value>>,
  value: Value,
): Name | undefined {
  const names = Object.keys(table) as Name[];
  return names.find((name) => table[name] === value);
}
