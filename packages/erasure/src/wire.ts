/**
 * Wire messages ↔ the types of this package. Both directions are total: a value without an
 * equivalent becomes one that is refused later (`unknown`, undefined), never one that passes (R8).
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BmcIdentity,
  type NvmeControllerSchema,
  type StorageDevice,
  StorageDeviceSchema,
  type SystemIdentity,
  Transport as WireTransport,
} from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { type DeviceFacts, type NvmeFacts, type Transport, transports } from './facts.ts';
import type { MachineWitness } from './identity.ts';
import type { ErasureMethod } from './method.ts';
import type { Verdict } from './verdict.ts';
import { verificationOf } from './verification-wire.ts';
import { addedFactsOf, addedFieldsOf } from './wire-facts.ts';

const transportsOnWire: Readonly<Record<Transport, WireTransport>> = {
  sata: WireTransport.SATA,
  nvme: WireTransport.NVME,
  sas: WireTransport.SAS,
  virtio: WireTransport.VIRTIO,
  mmc: WireTransport.MMC,
  mmcBoot: WireTransport.MMC_BOOT,
  pmem: WireTransport.PMEM,
  usb: WireTransport.USB,
  fibreChannel: WireTransport.FIBRE_CHANNEL,
  iscsi: WireTransport.ISCSI,
  nvmeFabrics: WireTransport.NVME_FABRICS,
  multipath: WireTransport.MULTIPATH,
  virtualMedia: WireTransport.VIRTUAL_MEDIA,
  optical: WireTransport.OPTICAL,
  kernel: WireTransport.KERNEL,
  unknown: WireTransport.UNKNOWN,
};

const methodsOnWire: Readonly<Record<ErasureMethod, agent.ErasureMethod>> = {
  nvmeFormatCrypto: agent.ErasureMethod.NVME_FORMAT_CRYPTO,
  nvmeFormat: agent.ErasureMethod.NVME_FORMAT,
  discard: agent.ErasureMethod.DISCARD,
  overwrite: agent.ErasureMethod.OVERWRITE,
  metadataOnly: agent.ErasureMethod.METADATA_ONLY,
  sanitizeCrypto: agent.ErasureMethod.SANITIZE_CRYPTO,
  sanitizeBlock: agent.ErasureMethod.SANITIZE_BLOCK,
  sanitizeOverwrite: agent.ErasureMethod.SANITIZE_OVERWRITE,
  ataSecurityErase: agent.ErasureMethod.ATA_SECURE_ERASE,
  ataEnhancedErase: agent.ErasureMethod.ATA_ENHANCED_ERASE,
};

/** A transport of the wire; an unknown one is `unknown`, which is refused. */
export function transportOf(transport: WireTransport): Transport {
  return transports.find((name) => transportsOnWire[name] === transport) ?? 'unknown';
}

/** Undefined for unspecified and for values of a newer version. */
export function methodOf(method: agent.ErasureMethod): ErasureMethod | undefined {
  const names = Object.keys(methodsOnWire) as ErasureMethod[];
  return names.find((name) => methodsOnWire[name] === method);
}

export function methodToWire(method: ErasureMethod): agent.ErasureMethod {
  return methodsOnWire[method];
}

/** Sizes beyond 2^53 bytes become no safe integer and are refused by the scope. */
export function deviceFactsOf(device: StorageDevice): DeviceFacts {
  return {
    name: device.device,
    transport: transportOf(device.transport),
    model: device.model,
    serial: device.serial,
    wwn: device.wwn,
    firmware: device.firmware,
    sizeBytes: Number(device.sizeBytes),
    rotational: device.rotational,
    removable: device.removable,
    readOnly: device.readOnly,
    discardSupported: device.discardSupported,
    ...(device.discardZeroes === undefined ? {} : { discardZeroes: device.discardZeroes }),
    raidVolume: device.raidVolume,
    holders: device.holders,
    regions: device.regions.map((region) => ({
      name: region.name,
      sizeBytes: Number(region.sizeBytes),
      logicalBlockBytes: region.logicalBlockBytes,
      ...(region.discardGranularityBytes === 0n
        ? {}
        : { discardGranularityBytes: Number(region.discardGranularityBytes) }),
    })),
    partitions: device.partitions.map((partition) => ({
      region: partition.region,
      offsetBytes: Number(partition.offsetBytes),
      sizeBytes: Number(partition.sizeBytes),
    })),
    ...(device.nvme === undefined ? {} : { nvme: nvmeFactsOf(device.nvme) }),
    ...addedFactsOf(device),
  };
}

function nvmeFactsOf(nvme: NonNullable<StorageDevice['nvme']>): NvmeFacts {
  const byte = nvme.deallocatedByte;
  return {
    formatSupported: nvme.formatSupported,
    cryptoEraseSupported: nvme.cryptoEraseSupported,
    formatsAllNamespaces: nvme.formatsAllNamespaces,
    ...(byte === 0x00 || byte === 0xff ? { deallocatedByte: byte } : {}),
    ...(nvme.hiddenNamespaces.length > 0 ? { hiddenNamespaces: nvme.hiddenNamespaces } : {}),
    ...(nvme.namespacesUnlisted ? { namespacesUnlisted: true } : {}),
    ...(nvme.unallocatedBytes === undefined
      ? {}
      : { unallocatedBytes: Number(nvme.unallocatedBytes) }),
  };
}

export function storageDeviceOf(facts: DeviceFacts): StorageDevice {
  const init: MessageInitShape<typeof StorageDeviceSchema> = {
    device: facts.name,
    transport: transportsOnWire[facts.transport],
    model: facts.model,
    serial: facts.serial,
    wwn: facts.wwn,
    firmware: facts.firmware,
    sizeBytes: BigInt(facts.sizeBytes),
    rotational: facts.rotational,
    readOnly: facts.readOnly,
    removable: facts.removable,
    discardSupported: facts.discardSupported,
    ...(facts.discardZeroes === undefined ? {} : { discardZeroes: facts.discardZeroes }),
    raidVolume: facts.raidVolume,
    holders: [...facts.holders],
    regions: facts.regions.map((region) => ({
      name: region.name,
      sizeBytes: BigInt(region.sizeBytes),
      logicalBlockBytes: region.logicalBlockBytes,
      discardGranularityBytes: BigInt(region.discardGranularityBytes ?? 0),
    })),
    partitions: facts.partitions.map((partition) => ({
      region: partition.region,
      offsetBytes: BigInt(partition.offsetBytes),
      sizeBytes: BigInt(partition.sizeBytes),
    })),
  };
  return create(StorageDeviceSchema, {
    ...init,
    ...addedFieldsOf(facts),
    ...(facts.nvme === undefined ? {} : { nvme: nvmeOnWire(facts.nvme) }),
  });
}

function nvmeOnWire(facts: NvmeFacts): MessageInitShape<typeof NvmeControllerSchema> {
  const { hiddenNamespaces, unallocatedBytes, ...rest } = facts;
  return {
    ...rest,
    hiddenNamespaces: [...(hiddenNamespaces ?? [])],
    ...(unallocatedBytes === undefined ? {} : { unallocatedBytes: BigInt(unallocatedBytes) }),
  };
}

/** The machine's own report, for guard 0. */
export function witnessOfSystem(system: SystemIdentity): MachineWitness {
  return {
    uuid: system.uuid,
    serials: {
      product: system.serial,
      chassis: system.chassisSerial,
      board: system.boardSerial,
    },
    bmcDeviceGuid: system.bmcGuid,
  };
}

/** The BMC's report out of band. Its GUID is a witness twice: of the system and of itself. */
export function witnessOfBmc(bmc: BmcIdentity): MachineWitness {
  return {
    uuid: bmc.guid,
    serials: { product: bmc.serial, chassis: bmc.chassisSerial, board: bmc.boardSerial },
    bmcDeviceGuid: bmc.guid,
  };
}

/** A verdict as outcomes carry it: also that there was none, because a test switched it off. */
export type RecordedVerdict =
  | (Verdict & { readonly kind: 'erased' })
  | { readonly kind: 'notErased'; readonly reason: string }
  | { readonly kind: 'unverified'; readonly reason: string }
  | { readonly kind: 'switchedOff' };

/**
 * Anything but a known verdict is `unverified`, and so is `erased` without a place read, without
 * the way it was read back, or without a challenge that was there before: zeros alone are no
 * evidence of an erasure.
 */
export function verdictOf(outcome: agent.DeviceOutcome): RecordedVerdict {
  switch (outcome.verdict) {
    case agent.VerdictKind.ERASED: {
      const placesRead = Number(outcome.placesRead);
      const bytesRead = Number(outcome.bytesRead);
      if (placesRead === 0 || bytesRead === 0) {
        return { kind: 'unverified', reason: 'said to be erased, but no place was read' };
      }
      if (outcome.challengeBlocksWritten === 0n) {
        return { kind: 'unverified', reason: 'said to be erased, but no challenge was written' };
      }
      const level = verificationOf(outcome.verification)?.level;
      const bytesExamined = Number(outcome.bytesExamined);
      if (level === undefined || bytesExamined === 0) {
        return { kind: 'unverified', reason: 'said to be erased, but not how it was read back' };
      }
      return { kind: 'erased', level, placesRead, bytesRead, bytesExamined };
    }
    case agent.VerdictKind.NOT_ERASED:
      return { kind: 'notErased', reason: outcome.verdictReason };
    case agent.VerdictKind.SWITCHED_OFF:
      return { kind: 'switchedOff' };
    default:
      return { kind: 'unverified', reason: outcome.verdictReason || 'no verdict was reported' };
  }
}

export function verdictToWire(
  verdict: RecordedVerdict,
): Pick<
  agent.DeviceOutcome,
  'verdict' | 'verdictReason' | 'placesRead' | 'bytesRead' | 'bytesExamined'
> {
  const nothingRead = { placesRead: 0n, bytesRead: 0n, bytesExamined: 0n };
  switch (verdict.kind) {
    case 'erased':
      return {
        verdict: agent.VerdictKind.ERASED,
        verdictReason: '',
        placesRead: BigInt(verdict.placesRead),
        bytesRead: BigInt(verdict.bytesRead),
        bytesExamined: BigInt(verdict.bytesExamined),
      };
    case 'notErased':
      return {
        verdict: agent.VerdictKind.NOT_ERASED,
        verdictReason: verdict.reason,
        ...nothingRead,
      };
    case 'unverified':
      return {
        verdict: agent.VerdictKind.UNVERIFIED,
        verdictReason: verdict.reason,
        ...nothingRead,
      };
    case 'switchedOff':
      return {
        verdict: agent.VerdictKind.SWITCHED_OFF,
        verdictReason: 'the verdict was switched off for a test',
        ...nothingRead,
      };
  }
}
