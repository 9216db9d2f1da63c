/**
 * What a run does to a device, as its plan shows it. Pure.
 *
 * Invariants:
 * D1 The type alone decides. No decision reads the text of a fate.
 * D2 A plan permits an erasure only by a fate that names one.
 * D3 A fate that is unset or unknown, as in a plan of another version, permits no erasure.
 */
import type { ErasureMethod, ScopeDecision } from '@rackwright/erasure';
import { CleaningMethod, DeviceFate, type PlannedDevice } from '@rackwright/messages';

/** The fields of a planned device that state its fate. */
export interface Fate extends Partial<Pick<PlannedDevice, 'method'>> {
  readonly deviceFate: DeviceFate;
  /** For people. */
  readonly fate: string;
}

interface Effect {
  /** `open`: a plan neither permits its erasure nor promises that it stays. */
  readonly kind: 'erased' | 'writtenOver' | 'kept' | 'leftAlone' | 'open';
  /** The lost data. */
  readonly loss?: string;
}

const everything = 'all that is on it';

const effects: Readonly<Record<DeviceFate, Effect>> = {
  // The loss is shown, because it cannot be excluded.
  [DeviceFate.UNSPECIFIED]: { kind: 'open', loss: everything },
  [DeviceFate.ERASED]: { kind: 'erased', loss: everything },
  [DeviceFate.METADATA_ERASED]: {
    kind: 'erased',
    loss: 'its partitions; the data stays readable to tools',
  },
  [DeviceFate.WRITTEN_OVER]: { kind: 'writtenOver', loss: everything },
  // The plan shows the step that may write instead.
  [DeviceFate.MAY_BE_WRITTEN]: { kind: 'open' },
  [DeviceFate.KEPT]: { kind: 'kept' },
  [DeviceFate.LEFT_ALONE]: { kind: 'leftAlone' },
  [DeviceFate.NOT_ERASABLE]: { kind: 'open' },
  [DeviceFate.NOT_CHOSEN]: { kind: 'open' },
};

type DeviceWithFate = Pick<PlannedDevice, 'deviceFate'>;

/** A record may hold a value of a newer version. */
function effectOf({ deviceFate }: DeviceWithFate): Effect {
  return effects[deviceFate] ?? effects[DeviceFate.UNSPECIFIED];
}

/** Whether a plan has the device erased. */
export function isErased(device: DeviceWithFate): boolean {
  return effectOf(device).kind === 'erased';
}

/** Whether an image overwrites its data. */
export function isWrittenOver(device: DeviceWithFate): boolean {
  return effectOf(device).kind === 'writtenOver';
}

/** Whether no run ever touches it. */
export function isLeftAlone(device: DeviceWithFate): boolean {
  return effectOf(device).kind === 'leftAlone';
}

/** Whether it certainly stays unchanged: not one of several candidates for a write. */
export function staysAsItIs(device: DeviceWithFate): boolean {
  const { kind } = effectOf(device);
  return kind === 'kept' || kind === 'leftAlone';
}

/** The data that it loses; undefined: none, or that of a step that names no device. */
export function lossBy(device: DeviceWithFate): string | undefined {
  return effectOf(device).loss;
}

/** The fate of a device that is erased by each method. */
const erasures: Readonly<Record<ErasureMethod, { name: string; method?: CleaningMethod }>> = {
  nvmeFormatCrypto: {
    name: 'NVMe format, cryptographic',
    method: CleaningMethod.NVME_FORMAT_CRYPTO,
  },
  nvmeFormat: { name: 'NVMe format', method: CleaningMethod.NVME_FORMAT },
  discard: { name: 'discard', method: CleaningMethod.DISCARD },
  overwrite: { name: 'overwrite', method: CleaningMethod.OVERWRITE },
  metadataOnly: { name: 'metadata only' },
  sanitizeCrypto: { name: 'sanitize, cryptographic', method: CleaningMethod.SANITIZE_CRYPTO },
  sanitizeBlock: { name: 'sanitize, block erase', method: CleaningMethod.SANITIZE_BLOCK },
  sanitizeOverwrite: { name: 'sanitize, overwrite', method: CleaningMethod.SANITIZE_OVERWRITE },
  ataSecurityErase: { name: 'ATA secure erase', method: CleaningMethod.ATA_SECURE_ERASE },
  ataEnhancedErase: {
    name: 'ATA secure erase, enhanced',
    method: CleaningMethod.ATA_ENHANCED_ERASE,
  },
};

/** The fate of a device that a clean erases. */
export function erasedBy(
  decision: Pick<ScopeDecision & { kind: 'inScope' }, 'method' | 'certifiedAs'>,
): Fate {
  const { name, method } = erasures[decision.method];
  const volume = decision.certifiedAs === 'volume' ? ' (a RAID volume, not its disks)' : '';
  const fate = `erase: ${name}${volume}`;
  return method === undefined
    ? { deviceFate: DeviceFate.METADATA_ERASED, fate }
    : { deviceFate: DeviceFate.ERASED, fate, method };
}
