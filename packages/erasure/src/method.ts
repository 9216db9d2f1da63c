/** The ways to erase a device, what each is worth, and what may be done after a crash. */

/** `metadataOnly` is the named weaker level: it makes a disk look empty and erases nothing else. */
export type ErasureMethod =
  | 'nvmeFormatCrypto'
  | 'nvmeFormat'
  | 'discard'
  | 'overwrite'
  | 'metadataOnly';

export const erasureMethods: readonly ErasureMethod[] = [
  'nvmeFormatCrypto',
  'nvmeFormat',
  'discard',
  'overwrite',
  'metadataOnly',
];

/** Sanitization terms of NIST SP 800-88 Rev. 2 (and IEEE 2883), plus our name for less. */
export type ErasureLevel = 'clear' | 'purge' | 'metadata';

/**
 * The level that a *verified* erasure by this method reaches. Deliberately modest: a format with
 * user data erase may be carried out as a mere deallocation, so only the cryptographic erase
 * counts as purge.
 */
export function erasureLevel(method: ErasureMethod): ErasureLevel {
  switch (method) {
    case 'nvmeFormatCrypto':
      return 'purge';
    case 'nvmeFormat':
    case 'discard':
    case 'overwrite':
      return 'clear';
    case 'metadataOnly':
      return 'metadata';
  }
}

/**
 * Whether a device may read as anything after the method: keys are gone, or the vendor chooses a
 * pattern. Then only the challenge shows that the method worked, and other places prove nothing.
 */
export function leavesContent(method: ErasureMethod): boolean {
  switch (method) {
    case 'nvmeFormatCrypto':
      return true;
    case 'nvmeFormat':
    case 'discard':
    case 'overwrite':
    case 'metadataOnly':
      return false;
  }
}

/** What certificates say of a method. */
export interface MethodFacts {
  readonly title: string;
  /** False: proven by fixtures made from the specification only, not yet on a device. */
  readonly provenOnDevice: boolean;
}

export const methodFacts: Readonly<Record<ErasureMethod, MethodFacts>> = {
  nvmeFormatCrypto: {
    title: 'NVMe Format NVM, cryptographic erase (SES 2)',
    provenOnDevice: false,
  },
  nvmeFormat: { title: 'NVMe Format NVM, user data erase (SES 1)', provenOnDevice: true },
  discard: { title: 'discard of all blocks (TRIM, UNMAP, deallocate)', provenOnDevice: true },
  overwrite: { title: 'one overwrite with zeros', provenOnDevice: true },
  metadataOnly: { title: 'overwrite of partition tables and metadata', provenOnDevice: true },
};

/** DESIGN R4: what the step engine may do with a step that was cut short. */
export type RerunClass = 'safe' | 'checkFirst' | 'neverTwice';

/** A format goes on inside the device after its caller died, so it is looked at first. */
export function rerunClass(method: ErasureMethod): RerunClass {
  switch (method) {
    case 'nvmeFormatCrypto':
    case 'nvmeFormat':
      return 'checkFirst';
    case 'discard':
    case 'overwrite':
    case 'metadataOnly':
      return 'safe';
  }
}

/** The class of a step over several devices is the most careful class among them. */
export function rerunClassOfAll(methods: readonly ErasureMethod[]): RerunClass {
  return methods.some((method) => rerunClass(method) === 'checkFirst') ? 'checkFirst' : 'safe';
}
