/**
 * Reads ipmitool's output for `raw` and `fru print`. Pure; every function answers undefined for
 * unknown output, and the driver calls that `malformed`. Section numbers are those of the IPMI 2.0
 * specification, revision 1.1.
 */
import type { BmcIdentity, BootDevice, BootOverride, PowerState } from '../driver.ts';

/** The bytes of a raw answer: pairs of hex digits, the completion code already removed. */
export function rawBytes(stdout: string): readonly number[] | undefined {
  const words = stdout.split(/\s+/).filter((word) => word !== '');
  const bytes: number[] = [];
  for (const word of words) {
    if (!/^[0-9a-f]{2}$/i.test(word)) return undefined;
    bytes.push(Number.parseInt(word, 16));
  }
  return bytes;
}

/** Get Device ID (§20.1): manufacturer id is three bytes, least significant first, 20 bits used. */
export function manufacturerId(bytes: readonly number[]): number | undefined {
  const [low, middle, high] = bytes.slice(6, 9);
  if (low === undefined || middle === undefined || high === undefined) return undefined;
  return (low | (middle << 8) | (high << 16)) & 0xf_ffff;
}

const guidBytes = 16;

/** Get System GUID (§22.14): 16 bytes, kept in the order of the wire. */
export function guidHex(bytes: readonly number[]): string | undefined {
  if (bytes.length !== guidBytes) return undefined;
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Get Chassis Status (§28.2): bit 0 of the first byte is "power is on". */
export function chassisPower(bytes: readonly number[]): PowerState | undefined {
  const [first] = bytes;
  if (first === undefined || bytes.length < 3) return undefined;
  return (first & 1) === 1 ? 'on' : 'off';
}

/** Get SEL Info (§31.2): version, then the number of entries, least significant byte first. */
export function logEntries(bytes: readonly number[]): number | undefined {
  const [, low, high] = bytes;
  if (low === undefined || high === undefined || bytes.length < 14) return undefined;
  return low | (high << 8);
}

/** Boot flags (§28.13, parameter 5), the two bytes that we set. */
export interface BootFlags {
  readonly flags: number;
  readonly device: number;
}

const flagValid = 0x80;
const flagEfi = 0x20;
/** Bits 5:2 of data 2. */
const deviceMask = 0x3c;
const deviceSelectors: Readonly<Record<BootDevice, number>> = {
  none: 0x00,
  network: 0x04,
  disk: 0x08,
  cd: 0x14,
};

/** The flags for the next boot only: never persistent, so that a lost agent leaves no trap. */
export function bootFlagsFor(override: BootOverride): BootFlags {
  const device = deviceSelectors[override.device];
  if (override.device === 'none') return { flags: 0, device };
  return { flags: flagValid | (override.firmware === 'uefi' ? flagEfi : 0), device };
}

/** Get System Boot Options (§28.13) for parameter 5: version, parameter, then five data bytes. */
export function readBootFlags(bytes: readonly number[]): BootFlags | undefined {
  const [, parameter, flags, device] = bytes;
  if (bytes.length < 7 || parameter === undefined) return undefined;
  if (flags === undefined || device === undefined) return undefined;
  // Bit 7 says "invalid or locked" (§28.13, table 28-14, data 2).
  if ((parameter & 0x7f) !== 5) return undefined;
  return { flags, device };
}

/** How a read-back differs from the request. */
export type BootFlagsDifference = 'none' | 'flags' | 'device';

export function bootFlagsDifference(wanted: BootFlags, read: BootFlags): BootFlagsDifference {
  // Without "valid" no firmware looks at the rest: enough for no override at all.
  if ((wanted.flags & flagValid) === 0 && (read.flags & flagValid) === 0) return 'none';
  if ((wanted.device & deviceMask) !== (read.device & deviceMask)) return 'device';
  const relevant = flagValid | flagEfi;
  return (wanted.flags & relevant) === (read.flags & relevant) ? 'none' : 'flags';
}

type FruField = 'manufacturer' | 'product' | 'serial' | 'boardSerial' | 'chassisSerial';

const fruFields: ReadonlyMap<string, FruField> = new Map([
  ['Product Manufacturer', 'manufacturer'],
  ['Product Name', 'product'],
  ['Product Serial', 'serial'],
  ['Board Serial', 'boardSerial'],
  ['Chassis Serial', 'chassisSerial'],
]);

/** Longest FRU text kept; a field's own length byte allows 63. */
const fruTextCharactersMax = 64;

/** `fru print 0`: label, colon, text. The first of equal labels counts; blanks count as absent. */
export function fruIdentity(stdout: string): Pick<BmcIdentity, FruField> {
  const found: Partial<Record<FruField, string>> = {};
  for (const line of stdout.split('\n')) {
    const colon = line.indexOf(':');
    if (colon < 0) continue;
    const field = fruFields.get(line.slice(0, colon).trim());
    const text = printable(line.slice(colon + 1)).slice(0, fruTextCharactersMax);
    if (field === undefined || text === '') continue;
    found[field] ??= text;
  }
  return found;
}

function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '').trim();
}
