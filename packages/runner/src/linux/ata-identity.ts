/**
 * An ATA device's identity: the 256 words of IDENTIFY DEVICE (ACS-3 §7.12.7), as `hdparm --Istdout`
 * prints them. Pure.
 */
import type { SanitizeFacts, SecurityState, WriteCache } from '@rackwright/erasure';

export const identityWords = 256;

/** Facts of the words that capacity, cache and erasure depend on. */
export interface AtaIdentity {
  /** Word 82 bit 10: SET MAX and READ NATIVE MAX exist. */
  readonly hostProtectedArea: boolean;
  /** Word 119 bit 8: accessible max address configuration exists (its successor). */
  readonly accessibleMaxAddress: boolean;
  /** Word 83 bit 11: device configuration overlays exist. */
  readonly overlay: boolean;
  /** Words 82 and 85, bit 5. */
  readonly writeCache: WriteCache;
  /** Words 59, 82 and 128. */
  readonly sanitize: SanitizeFacts;
  /** Word 217: revolutions per minute; 1 is solid state, 0 says nothing. */
  readonly rotation: number;
  /** Words 89 and 90: minutes that SECURITY ERASE UNIT takes, 0 when unreported. */
  readonly eraseMinutes: number;
  readonly enhancedEraseMinutes: number;
}

/** Words 27 to 46: the model number. */
const modelWords = [27, 46] as const;

/** Undefined unless the text has exactly the 256 words, of a device that identifies itself. */
export function parseAtaIdentity(text: string): AtaIdentity | undefined {
  const words = text
    .split('\n')
    .filter((line) => /^\s*(?:[\da-f]{4}\s+){7}[\da-f]{4}\s*$/.test(line))
    .flatMap((line) => line.trim().split(/\s+/))
    .map((word) => Number.parseInt(word, 16));
  if (words.length !== identityWords) return undefined;
  // For a device that refuses the command, hdparm prints zeros and ends well.
  const [first, last] = modelWords;
  if (words.slice(first, last + 1).every((each) => each === 0)) return undefined;
  const word = (index: number): number => words[index] ?? 0;
  const bit = (index: number, at: number): boolean => ((word(index) >> at) & 1) === 1;
  const hasSecurity = bit(82, 1);
  const hasSanitize = bit(59, 12);
  return {
    hostProtectedArea: bit(82, 10),
    // Words 83 and 119 hold something when bits 15:14 are 01b.
    overlay: isValid(word(83)) && bit(83, 11),
    accessibleMaxAddress: isValid(word(119)) && bit(119, 8),
    writeCache: bit(82, 5) ? (bit(85, 5) ? 'on' : 'off') : 'none',
    sanitize: {
      blockErase: hasSanitize && bit(59, 15),
      overwrite: hasSanitize && bit(59, 14),
      cryptoScramble: hasSanitize && bit(59, 13),
      ataSecurityErase: hasSecurity,
      ataEnhancedErase: hasSecurity && bit(128, 5),
      ...(hasSecurity ? { ataSecurity: securityOf(word(128)) } : {}),
    },
    rotation: word(217) === 0xffff ? 0 : word(217),
    eraseMinutes: minutesOf(word(89)),
    enhancedEraseMinutes: minutesOf(word(90)),
  };
}

function isValid(word: number): boolean {
  return word >> 14 === 0b01;
}

/** Word 128: bit 1 enabled, bit 2 locked, bit 3 frozen. */
function securityOf(word: number): SecurityState {
  if ((word & 0b0100) !== 0) return 'locked';
  if ((word & 0b1000) !== 0) return 'frozen';
  return (word & 0b0010) !== 0 ? 'enabled' : 'disabled';
}

/** Bit 15 says that 14:0 count, else 7:0; in units of two minutes, the largest value means more. */
function minutesOf(word: number): number {
  return 2 * ((word & 0x8000) === 0 ? word & 0xff : word & 0x7fff);
}
