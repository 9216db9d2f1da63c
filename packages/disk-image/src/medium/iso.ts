/**
 * A CD that UEFI boots from: ISO 9660 (ECMA-119) with an El Torito entry for a FAT image, in which
 * the firmware finds its loader (UEFI 2.10 §13.3.2). Made whole in memory.
 *
 * 1. The same loaders give the same bytes: times are fixed, nothing is left to chance.
 * 2. It holds loaders and nothing else.
 */
import { ImageError } from '../failure.ts';
import { makeFat } from '../seed/fat.ts';

/** Loaders by the name under which firmware of their kind looks for them (UEFI 2.10 §3.5.1.1). */
export interface BootMediumLoaders {
  readonly uefiX64?: Uint8Array;
  readonly uefiArm64?: Uint8Array;
}

const names: Readonly<Record<keyof BootMediumLoaders, string>> = {
  uefiX64: 'BOOTX64.EFI',
  uefiArm64: 'BOOTAA64.EFI',
};

const sectorBytes = 2048;
const blockBytes = 512;
/** The minimum size of the FAT image: with fewer bytes it could fall between FAT12 and FAT16. */
const fatBytesMin = 4 * 1024 * 1024;
/** Its clusters are one block each; El Torito counts its blocks in 16 bits. */
const fatBytesMax = 31 * 1024 * 1024;
const fatOverheadBytes = 1024 * 1024;
const label = 'RACKWRIGHT';

const at = { volume: 16, boot: 17, end: 18, catalog: 19, pathL: 20, pathM: 21, root: 22, fat: 23 };
/** Platform id of UEFI (UEFI 2.10 §13.3.2.1). */
const uefiPlatform = 0xef;

/** Throws `ImageError` when there is no loader, or when they are too large for a medium. */
export function makeBootMedium(loaders: BootMediumLoaders): Uint8Array {
  const files = (['uefiX64', 'uefiArm64'] as const).flatMap((platform) => {
    const content = loaders[platform];
    return content === undefined ? [] : [{ path: `EFI/BOOT/${names[platform]}`, content }];
  });
  const loaderBytes = files.reduce((sum, { content }) => sum + content.length, 0);
  if (loaderBytes === 0) throw new ImageError('badSeed', 'a boot medium needs a loader');
  const wanted = Math.max(fatBytesMin, loaderBytes + fatOverheadBytes);
  const sizeBytes = Math.ceil(wanted / sectorBytes) * sectorBytes;
  if (sizeBytes > fatBytesMax) {
    const most = `at most ${fatBytesMax - fatOverheadBytes}`;
    throw new ImageError('badSeed', `the loaders have ${loaderBytes} bytes; ${most} fit a medium`);
  }
  const fat = makeFat({ sizeBytes, blockBytes, label, files });
  const image = new Uint8Array(at.fat * sectorBytes + fat.length);
  const put = (sector: number, bytes: Uint8Array): void => image.set(bytes, sector * sectorBytes);
  put(at.volume, volume(image.length / sectorBytes));
  put(at.boot, bootRecord());
  put(at.end, descriptor(255));
  put(at.catalog, catalog(fat.length / blockBytes));
  put(at.pathL, pathTable({ littleEndian: true }));
  put(at.pathM, pathTable({ littleEndian: false }));
  put(at.root, rootFolder(fat.length));
  put(at.fat, fat);
  return image;
}

/** §8: a sector that begins with its type, the standard's name and its version. */
function descriptor(type: number): Uint8Array {
  const bytes = new Uint8Array(sectorBytes);
  bytes[0] = type;
  bytes.set(Buffer.from('CD001'), 1);
  bytes[6] = 1;
  return bytes;
}

/** §8.4, the primary volume descriptor. */
function volume(sectors: number): Uint8Array {
  const bytes = descriptor(1);
  const spaces = (from: number, to: number): void => void bytes.fill(0x20, from, to);
  spaces(8, 72);
  bytes.set(Buffer.from(label), 40);
  bytes.set(both32(sectors), 80);
  bytes.set(both16(1), 120);
  bytes.set(both16(1), 124);
  bytes.set(both16(sectorBytes), 128);
  bytes.set(both32(pathTableBytes), 132);
  const view = new DataView(bytes.buffer);
  view.setUint32(140, at.pathL, true);
  view.setUint32(148, at.pathM, false);
  bytes.set(folderRecord('\0'), 156);
  spaces(190, 813);
  // §8.4.26.1: sixteen zeros as digits and a zero byte mean that no time is given.
  for (const start of [813, 830, 847, 864]) bytes.fill(0x30, start, start + 16);
  bytes[881] = 1;
  return bytes;
}

/** El Torito 1.0, figure 7: where the catalog is. */
function bootRecord(): Uint8Array {
  const bytes = descriptor(0);
  bytes.set(Buffer.from('EL TORITO SPECIFICATION'), 7);
  new DataView(bytes.buffer).setUint32(71, at.catalog, true);
  return bytes;
}

/** El Torito 1.0, figures 2 and 3: a validation entry and one that boots without emulation. */
function catalog(fatBlocks: number): Uint8Array {
  const bytes = new Uint8Array(sectorBytes);
  const view = new DataView(bytes.buffer);
  bytes[0] = 1;
  bytes[1] = uefiPlatform;
  bytes[30] = 0x55;
  bytes[31] = 0xaa;
  let sum = 0;
  for (let offset = 0; offset < 32; offset += 2) sum += view.getUint16(offset, true);
  // The words of the entry add up to 0.
  view.setUint16(28, -sum & 0xffff, true);
  bytes[32] = 0x88;
  view.setUint16(38, fatBlocks, true);
  view.setUint32(40, at.fat, true);
  return bytes;
}

const pathTableBytes = 10;

/** §9.4: the root alone. */
function pathTable({ littleEndian }: { readonly littleEndian: boolean }): Uint8Array {
  const bytes = new Uint8Array(pathTableBytes);
  const view = new DataView(bytes.buffer);
  bytes[0] = 1;
  view.setUint32(2, at.root, littleEndian);
  view.setUint16(6, 1, littleEndian);
  return bytes;
}

function rootFolder(fatBytes: number): Uint8Array {
  return Buffer.concat([
    folderRecord('\0'),
    folderRecord('\x01'),
    record('BOOT.CAT;1', at.catalog, sectorBytes, 0),
    record('EFI.IMG;1', at.fat, fatBytes, 0),
  ]);
}

function folderRecord(name: string): Uint8Array {
  return record(name, at.root, sectorBytes, 2);
}

/** §9.1. */
function record(name: string, sector: number, sizeBytes: number, flags: number): Uint8Array {
  const length = 33 + name.length;
  const bytes = new Uint8Array(length + (length % 2));
  bytes[0] = bytes.length;
  bytes.set(both32(sector), 2);
  bytes.set(both32(sizeBytes), 10);
  // 1980-01-01, as in the FAT image.
  bytes.set([80, 1, 1], 18);
  bytes[25] = flags;
  bytes.set(both16(1), 28);
  bytes[32] = name.length;
  bytes.set(Buffer.from(name, 'latin1'), 33);
  return bytes;
}

/** §7.3.3: a number in both orders of bytes. */
function both32(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, value, true);
  view.setUint32(4, value, false);
  return bytes;
}

function both16(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, value, true);
  view.setUint16(2, value, false);
  return bytes;
}
