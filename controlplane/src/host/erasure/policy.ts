/** A site's requirements for an erasure: the read-back, and the handling of hidden areas. Pure. */

import {
  bootMediaOf,
  defaultScopePolicy,
  defaultVerificationPolicy,
  type ErasureMethod,
  type ScopePolicy,
  type VerificationPolicy,
  verificationPolicyOf,
} from '@rackwright/erasure';
import {
  CleaningMethod,
  type FleetSpec,
  HiddenAreas,
  type HostSpec,
  UsbDisks,
} from '@rackwright/messages';

type Cleaning = Pick<HostSpec, 'cleaning'>;

/** The host's policy takes precedence over the fleet's. */
export function verificationPolicy(
  { cleaning }: Cleaning,
  fleet: FleetSpec | undefined,
): VerificationPolicy {
  const ofFleet = verificationPolicyOf(fleet?.verification, defaultVerificationPolicy);
  return verificationPolicyOf(cleaning?.verification, ofFleet);
}

/** An unknown value is refused where it is set. */
function methodAsked(method: CleaningMethod): ScopePolicy['method'] {
  switch (method) {
    case CleaningMethod.NVME_FORMAT:
      return 'nvmeFormat';
    case CleaningMethod.NVME_FORMAT_CRYPTO:
      return 'nvmeFormatCrypto';
    case CleaningMethod.DISCARD:
      return 'discard';
    case CleaningMethod.OVERWRITE:
      return 'overwrite';
    case CleaningMethod.SANITIZE_CRYPTO:
      return 'sanitizeCrypto';
    case CleaningMethod.SANITIZE_BLOCK:
      return 'sanitizeBlock';
    case CleaningMethod.SANITIZE_OVERWRITE:
      return 'sanitizeOverwrite';
    case CleaningMethod.ATA_SECURE_ERASE:
      return 'ataSecurityErase';
    case CleaningMethod.ATA_ENHANCED_ERASE:
      return 'ataEnhancedErase';
    default:
      return 'strongest';
  }
}

function usbAsked(disks: UsbDisks): ScopePolicy['usb'] {
  switch (disks) {
    case UsbDisks.ERASE:
      return 'erase';
    case UsbDisks.LEAVE:
      return 'leave';
    default:
      return 'refuse';
  }
}

/** Which devices are erased by which method; `metadataOnly` takes precedence over the policy. */
export function scopePolicy(
  cleaning: HostSpec['cleaning'],
  onlyMethod?: ErasureMethod & 'metadataOnly',
): ScopePolicy {
  const method = onlyMethod ?? methodAsked(cleaning?.method ?? CleaningMethod.UNSPECIFIED);
  const remove = cleaning?.hiddenAreas === HiddenAreas.REMOVE;
  const hiddenAreas = remove ? 'remove' : 'refuse';
  const usb = usbAsked(cleaning?.usbDisks ?? UsbDisks.UNSPECIFIED);
  const bootMedia = bootMediaOf(cleaning?.bootMedia ?? []);
  return { ...defaultScopePolicy, method, hiddenAreas, usb, bootMedia };
}
