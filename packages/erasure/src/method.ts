/** The ways to erase a device, the level of each, and the allowed actions after a crash. */

/** `metadataOnly` is the named weaker level: it makes a disk look empty and erases nothing else. */
export type ErasureMethod =
  | 'nvmeFormatCrypto'
  | 'nvmeFormat'
  | 'discard'
  | 'overwrite'
  | 'metadataOnly'
  | 'sanitizeCrypto'
  | 'sanitizeBlock'
  | 'sanitizeOverwrite'
  | 'ataSecurityErase'
  | 'ataEnhancedErase';

/** Sanitization terms of NIST SP 800-88 Rev. 2 (and IEEE 2883), plus our name for less. */
export type ErasureLevel = 'clear' | 'purge' | 'metadata';

/** DESIGN R4: the step engine's options after an interruption. */
export type RerunClass = 'safe' | 'checkFirst' | 'neverTwice';

/** The facts of a method that are the same for each device; certificates carry title and proof. */
export interface MethodFacts {
  /** The level of a *verified* erasure by it. Deliberately modest: see the table. */
  readonly level: ErasureLevel;
  /** The technique by its name in the standards. */
  readonly title: string;
  readonly rerunClass: 'safe' | 'checkFirst';
  /** The device may read as anything afterwards: only the challenge shows that it worked. */
  readonly leavesContent: boolean;
  /** False: proven by fixtures made from the specification only, not yet on a device. */
  readonly provenOnDevice: boolean;
}

/**
 * IEEE 2883 counts sanitize commands as purge. The level is lower elsewhere: a format with user
 * data erase may be a mere deallocation, and the maker decides what SECURITY ERASE UNIT does. Work
 * that goes on inside the device after its caller died is looked at first (`checkFirst`).
 */
export const methodFacts: Readonly<Record<ErasureMethod, MethodFacts>> = {
  nvmeFormatCrypto: {
    ...{ level: 'purge', title: 'NVMe Format NVM, cryptographic erase (SES 2)' },
    ...{ rerunClass: 'checkFirst', leavesContent: true, provenOnDevice: false },
  },
  nvmeFormat: {
    ...{ level: 'clear', title: 'NVMe Format NVM, user data erase (SES 1)' },
    ...{ rerunClass: 'checkFirst', leavesContent: false, provenOnDevice: true },
  },
  discard: {
    ...{ level: 'clear', title: 'discard of all blocks (TRIM, UNMAP, deallocate)' },
    ...{ rerunClass: 'safe', leavesContent: false, provenOnDevice: true },
  },
  overwrite: {
    ...{ level: 'clear', title: 'one overwrite with zeros' },
    ...{ rerunClass: 'safe', leavesContent: false, provenOnDevice: true },
  },
  metadataOnly: {
    ...{ level: 'metadata', title: 'overwrite of partition tables and metadata' },
    ...{ rerunClass: 'safe', leavesContent: false, provenOnDevice: true },
  },
  sanitizeCrypto: {
    ...{ level: 'purge', title: 'sanitize, cryptographic erase' },
    ...{ rerunClass: 'checkFirst', leavesContent: true, provenOnDevice: false },
  },
  sanitizeBlock: {
    ...{ level: 'purge', title: 'sanitize, block erase' },
    // The maker chooses the content of erased blocks (ACS-3 §7.36.3, NVMe 2.0 §8.21).
    ...{ rerunClass: 'checkFirst', leavesContent: true, provenOnDevice: false },
  },
  sanitizeOverwrite: {
    ...{ level: 'purge', title: 'sanitize, overwrite with zeros, one pass' },
    ...{ rerunClass: 'checkFirst', leavesContent: false, provenOnDevice: false },
  },
  ataSecurityErase: {
    ...{ level: 'clear', title: 'ATA SECURITY ERASE UNIT, normal' },
    ...{ rerunClass: 'checkFirst', leavesContent: false, provenOnDevice: false },
  },
  ataEnhancedErase: {
    ...{ level: 'clear', title: 'ATA SECURITY ERASE UNIT, enhanced' },
    // Enhanced mode writes a pattern of the maker's (ACS-3 §7.37).
    ...{ rerunClass: 'checkFirst', leavesContent: true, provenOnDevice: false },
  },
};

export const erasureMethods = Object.keys(methodFacts) as readonly ErasureMethod[];

/** The level that a *verified* erasure by this method reaches. */
export function erasureLevel(method: ErasureMethod): ErasureLevel {
  return methodFacts[method].level;
}

/**
 * Whether a device may read as anything after the method: keys are gone, or the vendor chooses a
 * pattern. Then only the challenge shows that the method worked, and other places prove nothing.
 */
export function leavesContent(method: ErasureMethod): boolean {
  return methodFacts[method].leavesContent;
}

/** A format goes on inside the device after its caller died, so it is looked at first. */
export function rerunClass(method: ErasureMethod): RerunClass {
  return methodFacts[method].rerunClass;
}

/** The class of a step over several devices is the most careful class among them. */
export function rerunClassOfAll(all: readonly ErasureMethod[]): RerunClass {
  return all.some((method) => rerunClass(method) === 'checkFirst') ? 'checkFirst' : 'safe';
}

/** Methods that the device carries out on its own, beside NVMe format. */
export type SelfErasure =
  | 'sanitizeCrypto'
  | 'sanitizeBlock'
  | 'sanitizeOverwrite'
  | 'ataSecurityErase'
  | 'ataEnhancedErase';
