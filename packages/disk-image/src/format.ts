/** The format of a file, by its first bytes; and whether it is the declared one. */
import { ImageError } from './failure.ts';

/** The format after all decompression. */
export const diskFormats = ['raw', 'qcow2'] as const;
export type DiskFormat = (typeof diskFormats)[number];

export const compressions = ['none', 'gzip', 'zstd', 'xz'] as const;
export type Compression = (typeof compressions)[number];

/** The declared format; an undeclared property follows from the file itself. */
export interface DeclaredFormat {
  readonly format?: DiskFormat;
  readonly compression?: Compression;
}

export interface FoundFormat {
  readonly format: DiskFormat;
  readonly compression: Compression;
}

/** This many first bytes determine the format; a file may be shorter. */
export const magicBytes = 16;

type Kind = Exclude<Compression, 'none'> | 'qcow2' | ForeignKind;
type ForeignKind = 'bzip2' | 'lz4' | 'zip' | 'VMDK' | 'VHD' | 'VHDX' | 'VDI';

const magics: readonly { readonly kind: Kind; readonly hex: string }[] = [
  { kind: 'gzip', hex: '1f8b' },
  { kind: 'zstd', hex: '28b52ffd' },
  { kind: 'xz', hex: 'fd377a585a00' },
  { kind: 'qcow2', hex: '514649fb' },
  { kind: 'bzip2', hex: '425a68' },
  { kind: 'lz4', hex: '04224d18' },
  { kind: 'zip', hex: '504b0304' },
  { kind: 'VMDK', hex: '4b444d56' },
  { kind: 'VMDK', hex: '23204469736b204465736372697074' },
  { kind: 'VHD', hex: '636f6e6563746978' },
  { kind: 'VHDX', hex: '7668647866696c65' },
  { kind: 'VDI', hex: '3c3c3c20' },
];
/** A zstd file may begin with a frame to be skipped: 50…5f 2a 4d 18. */
const skippableZstd = /^5[0-9a-f]2a4d18/;

/** The format of a file that begins so. Throws `ImageError`. */
export function formatOf(head: Uint8Array, declared: DeclaredFormat): FoundFormat {
  const found = kindOf(head);
  const { format, compression } = declared;
  if (found === 'gzip' || found === 'zstd' || found === 'xz') {
    if (compression !== undefined && compression !== found) {
      throw wrong(compression === 'none' ? 'not compressed' : compression, found);
    }
    return { format: format ?? 'raw', compression: found };
  }
  if (compression !== undefined && compression !== 'none') {
    throw wrong(compression, found ?? 'not compressed');
  }
  return { format: plainFormat(found, format), compression: 'none' };
}

/** The decompressed content must be a raw disk. Throws `ImageError`. */
export function checkUnpacked(head: Uint8Array): void {
  const found = kindOf(head);
  if (found === undefined) return;
  if (found === 'qcow2') {
    throw new ImageError('unsupported', 'the image is a compressed qcow2 file: serve it as qcow2');
  }
  throw wrong('a raw disk once it is decompressed', found);
}

function plainFormat(found: Kind | undefined, declared: DiskFormat | undefined): DiskFormat {
  if (found === undefined) {
    if (declared === 'qcow2') throw wrong('qcow2', 'of no known format');
    return 'raw';
  }
  if (found !== 'qcow2') {
    throw new ImageError('unsupported', `the image is ${found}; raw and qcow2 are taken`);
  }
  if (declared === 'raw') throw wrong('raw', found);
  return found;
}

function kindOf(head: Uint8Array): Kind | undefined {
  const hex = Buffer.from(head.subarray(0, magicBytes)).toString('hex');
  if (skippableZstd.test(hex)) return 'zstd';
  return magics.find((magic) => hex.startsWith(magic.hex))?.kind;
}

function wrong(declared: string, found: string): ImageError {
  return new ImageError('wrongFormat', `the image was declared as ${declared}, but is ${found}`);
}
