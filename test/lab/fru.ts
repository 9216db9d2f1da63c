/**
 * The inventory that a BMC keeps about its machine: IPMI Platform Management FRU Information
 * Storage Definition 1.0, common header (section 8) and product area (section 12).
 */

const FORMAT = 1;
const LANGUAGE_ENGLISH = 0;
const TYPE_TEXT = 0xc0;
const END_OF_FIELDS = 0xc1;
const LENGTH_MAX = 0x3f;
const HEADER_BYTES = 8;

/** A FRU image with a product area that carries the serial number. Latin text up to 63 letters. */
export function fruImage(product: {
  readonly manufacturer: string;
  readonly name: string;
  readonly serial: string;
}): Uint8Array {
  const { manufacturer, name, serial } = product;
  // order of the standard: manufacturer, name, part number, version, serial, asset tag, file id
  const fields = [manufacturer, name, '', '', serial, '', ''].map((text) => {
    if (text.length > LENGTH_MAX) throw new Error(`"${text}" has more than ${LENGTH_MAX} letters`);
    return [TYPE_TEXT | text.length, ...Buffer.from(text, 'latin1')];
  });
  const body = [FORMAT, 0, LANGUAGE_ENGLISH, ...fields.flat(), END_OF_FIELDS];
  while (body.length % 8 !== 7) body.push(0);
  body[1] = (body.length + 1) / 8;
  const header = [FORMAT, 0, 0, 0, HEADER_BYTES / 8, 0, 0];
  return Uint8Array.from([...withChecksum(header), ...withChecksum(body)]);
}

/** The bytes and one more that makes their sum zero modulo 256. */
function withChecksum(bytes: readonly number[]): number[] {
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  return [...bytes, -sum & 0xff];
}
