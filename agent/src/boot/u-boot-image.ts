/**
 * A script in the form that U-Boot takes: the legacy image, a header of 64 bytes with checksums of
 * itself and of the data behind it. All numbers are big-endian.
 */
import { crc32 } from 'node:zlib';

const magic = 0x27051956;
const headerBytes = 64;
const at = { magic: 0, headerCrc: 4, dataBytes: 12, dataCrc: 24, kinds: 28, name: 32 } as const;
/** Linux, ARM, a script, not compressed. */
const kinds = [5, 2, 6, 0];
/** The header's room for a name, with the zero that ends it. */
const nameBytes = 32;

/** The name is for a person at the console; it is cut to its room. */
export function uBootImage(name: string, script: string): Uint8Array {
  const text = Buffer.from(script);
  // The list of the parts' lengths, which ends with zero; a script is one part.
  const data = Buffer.concat([Buffer.alloc(8), text]);
  data.writeUInt32BE(text.length);
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(magic, at.magic);
  header.writeUInt32BE(data.length, at.dataBytes);
  header.writeUInt32BE(crc32(data), at.dataCrc);
  header.set(kinds, at.kinds);
  header.write(name, at.name, nameBytes - 1, 'latin1');
  // Computed while its own field is zero.
  header.writeUInt32BE(crc32(header), at.headerCrc);
  return Buffer.concat([header, data]);
}
