/** IPv4 addresses: as four bytes, in dotted form and as a number. */
import { type ByteReader, EncodeError } from '@rackwright/bytes';

const dot = 46;
const zero = 48;

/**
 * The address as an unsigned number; undefined when it is not dotted IPv4, or a part of it begins
 * with a zero. One pass and no patterns, because it is called several times for each packet.
 */
export function addressNumber(dotted: string): number | undefined {
  let [number, parts, digits, part] = [0, 1, 0, 0];
  for (let at = 0; at < dotted.length; at += 1) {
    const code = dotted.charCodeAt(at);
    if (code === dot) {
      if (digits === 0) return undefined;
      number = number * 256 + part;
      parts += 1;
      [digits, part] = [0, 0];
      continue;
    }
    const digit = code - zero;
    const hasLeadingZero = digits > 0 && part === 0;
    if (digit < 0 || digit > 9 || hasLeadingZero) return undefined;
    part = part * 10 + digit;
    digits += 1;
    if (part > 255) return undefined;
  }
  return parts === 4 && digits > 0 ? number * 256 + part : undefined;
}

/** The dotted form of the next four bytes. */
export function decodeAddress(reader: ByteReader): string {
  return reader.bytes(4).join('.');
}

/** The four bytes of a dotted address. Throws EncodeError for anything else. */
export function encodeAddress(address: string): Uint8Array {
  const number = addressNumber(address);
  if (number === undefined) {
    throw new EncodeError(`${JSON.stringify(address)} is no dotted IPv4 address`);
  }
  return Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number);
}
