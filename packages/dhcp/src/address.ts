import { type ByteReader, EncodeError } from '@rackwright/bytes';

/** The dotted form of the next four bytes. */
export function decodeAddress(reader: ByteReader): string {
  return reader.bytes(4).join('.');
}

/** The four bytes of a dotted address. Throws EncodeError for anything else. */
export function encodeAddress(address: string): Uint8Array {
  const bytes = address
    .split('.')
    .map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) ? Number(part) : Number.NaN));
  if (bytes.length !== 4 || !bytes.every((byte) => byte <= 255)) {
    throw new EncodeError(`${JSON.stringify(address)} is no dotted IPv4 address`);
  }
  return Uint8Array.from(bytes);
}
