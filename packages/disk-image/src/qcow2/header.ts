/**
 * The header of a qcow2 file (QEMU's specification of the format, versions 2 and 3).
 *
 * Q1 A feature that changes what the guest sees and is not supported here is refused by its name: a
 *    backing file, an external data file, encryption, and every incompatible feature.
 */
import { ByteReader, DecodeError } from '@rackwright/bytes';
import { ImageError } from '../failure.ts';

export interface Qcow2Header {
  readonly version: 2 | 3;
  /** The size that the guest sees. */
  readonly sizeBytes: number;
  readonly clusterBits: number;
  readonly l1Entries: number;
  readonly l1Offset: number;
  readonly compression: 'zlib' | 'zstd';
}

/** So much of a file is enough for its header and the names of its features. */
export const headerBytesMax = 64 * 1024;

const magic = 0x51_46_49_fb;
const clusterBitsMin = 9;
const clusterBitsMax = 21;
const version2Bytes = 72;
const version3Bytes = 104;
const l1BytesMax = 32 * 1024 * 1024;
const entryBytes = 8;
const namesExtension = 0x68_03_f8_57;
const extensionsMax = 32;
const nameBytes = 46;

/** Incompatible features that are known; only the compression is followed. */
const features: Readonly<Record<number, string>> = {
  0: 'it was not closed as it should ("dirty": qemu-img check -r all)',
  1: 'it is marked corrupt',
  2: 'it has an external data file',
  4: 'it has extended L2 entries',
};
const compressionFeature = 3;

/** Reads the header from the file's first bytes. Throws `ImageError`. */
export function parseHeader(head: Uint8Array): Qcow2Header {
  try {
    return decode(new ByteReader(head, 'qcow2 header'), head);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new ImageError('malformed', error.message, { cause: error });
  }
}

function decode(reader: ByteReader, head: Uint8Array): Qcow2Header {
  if (reader.uint32() !== magic) throw reader.error('not the magic number');
  const version = reader.uint32();
  if (version !== 2 && version !== 3) {
    throw new ImageError('unsupported', `qcow2 version ${version}; 2 and 3 are taken`);
  }
  const backingOffset = uint64(reader);
  reader.uint32();
  if (backingOffset !== 0) throw refused('it has a backing file');
  const clusterBits = reader.uint32();
  if (clusterBits < clusterBitsMin || clusterBits > clusterBitsMax) {
    throw reader.error(`clusters of 2^${clusterBits} bytes`);
  }
  const sizeBytes = uint64(reader);
  if (reader.uint32() !== 0) throw refused('it is encrypted');
  const l1Entries = reader.uint32();
  const l1Offset = uint64(reader);
  const l2Entries = 2 ** clusterBits / entryBytes;
  const needed = Math.ceil(sizeBytes / (l2Entries * 2 ** clusterBits));
  if (l1Entries < needed) throw reader.error(`${l1Entries} entries where ${needed} are needed`);
  if (needed * entryBytes > l1BytesMax) {
    throw new ImageError('unsupported', `the qcow2 file speaks of a disk of ${sizeBytes} bytes`);
  }
  const more = version === 3 ? readVersion3(head) : { compression: 'zlib' as const };
  return { version, sizeBytes, clusterBits, l1Entries: needed, l1Offset, ...more };
}

function readVersion3(head: Uint8Array): Pick<Qcow2Header, 'compression'> {
  const reader = new ByteReader(head, 'qcow2 header');
  reader.bytes(version2Bytes);
  const incompatible = (BigInt(reader.uint32()) << 32n) | BigInt(reader.uint32());
  reader.bytes(2 * entryBytes + 4);
  const headerBytes = reader.uint32();
  if (headerBytes < version3Bytes || headerBytes % 8 !== 0) {
    throw reader.error(`a header of ${headerBytes} bytes`);
  }
  for (let bit = 0; bit < 64; bit += 1) {
    if ((incompatible & (1n << BigInt(bit))) === 0n || bit === compressionFeature) continue;
    const name = featureName(head, headerBytes, bit);
    throw refused(features[bit] ?? `it needs the unknown feature ${bit}${name}`);
  }
  const kind = headerBytes > version3Bytes ? reader.uint8() : 0;
  const isDeclared = (incompatible & (1n << BigInt(compressionFeature))) !== 0n;
  if (kind > 1) throw refused(`it is compressed by method ${kind}`);
  if (isDeclared !== (kind !== 0)) throw reader.error('a compression that its features deny');
  return { compression: kind === 1 ? 'zstd' : 'zlib' };
}

/** The file's own name of a feature; empty when it has none, or its extensions are broken. */
function featureName(head: Uint8Array, headerBytes: number, bit: number): string {
  try {
    const reader = new ByteReader(head, 'qcow2 header');
    reader.bytes(headerBytes);
    for (let count = 0; count < extensionsMax; count += 1) {
      const kind = reader.uint32();
      const length = reader.uint32();
      if (kind === 0) break;
      const content = new ByteReader(reader.bytes(length), 'names of features');
      reader.bytes((8 - (length % 8)) % 8);
      if (kind !== namesExtension) continue;
      while (content.remaining >= 2 + nameBytes) {
        const isIncompatible = content.uint8() === 0;
        const isThis = content.uint8() === bit;
        const [name = ''] = Buffer.from(content.bytes(nameBytes)).toString('latin1').split('\0');
        if (isIncompatible && isThis) return ` (${name.replace(/[^ -~]/g, '?')})`;
      }
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  return '';
}

function refused(problem: string): ImageError {
  return new ImageError('unsupported', `the qcow2 file cannot be used: ${problem}`);
}

function uint64(reader: ByteReader): number {
  const value = reader.uint32() * 2 ** 32 + reader.uint32();
  if (Number.isSafeInteger(value)) return value;
  throw reader.error('a number beyond every file');
}
