/**
 * The device's own record of what was done to it: QEMU's `blklogwrites` writes it, in the format of
 * the kernel's dm-log-writes target (Documentation/admin-guide/device-mapper/log-writes.rst).
 *
 * 1. It is read here and nowhere written; nothing of ours has a hand in it.
 * 2. A log that is cut short (its QEMU was killed) gives the entries that are whole. One that makes
 *    no sense is refused: QEMU before 9 mixes up its log when something is written while a zeroing
 *    is being logged.
 *
 * Layout, little endian: a super block of one sector (magic, version, number of entries, sector
 * size), then for each entry one sector (first sector, sectors, flags, and a length that QEMU
 * leaves at zero) followed by the data of these sectors. Discards carry none. A zeroing ("write
 * zeroes") is a write whose data are zeros.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const MAGIC = 0x6a736677736872n;
const VERSION = 1n;
const SECTOR_BYTES_MIN = 512;
const SECTOR_BYTES_MAX = 4096;
const SUPER_BYTES = 28;
const ENTRY_BYTES = 32;
const FLAG_FLUSH = 1n;
const FLAG_DISCARD = 4n;
const READ_BYTES = 1024 * 1024;

/** One thing that was done to the device; places and lengths in bytes. */
export type BlockLogEntry =
  | {
      readonly kind: 'write';
      readonly offset: number;
      readonly length: number;
      /** Where the data lie in the log file. */
      readonly dataAt: number;
    }
  | { readonly kind: 'discard'; readonly offset: number; readonly length: number }
  | { readonly kind: 'flush' };

/**
 * Reads the whole log of a device of `deviceBytes`. An empty file (the machine never came up) has
 * no entries.
 */
export function readBlockLog(path: string, deviceBytes: number): BlockLogEntry[] {
  const file = openSync(path, 'r');
  try {
    const size = fstatSync(file).size;
    if (size < SUPER_BYTES) return [];
    const sectorBytes = readSuper(readAt(file, 0, SUPER_BYTES), path);
    const entries: BlockLogEntry[] = [];
    let at = sectorBytes;
    while (at + ENTRY_BYTES <= size) {
      const raw = readAt(file, at, ENTRY_BYTES);
      const sector = raw.readBigUInt64LE(0);
      const sectors = raw.readBigUInt64LE(8);
      const flags = raw.readBigUInt64LE(16);
      if (sectors === 0n && flags === 0n) break; // room that was never written
      const offset = Number(sector) * sectorBytes;
      const length = Number(sectors) * sectorBytes;
      const dataAt = at + sectorBytes;
      if (offset + length > deviceBytes) {
        throw new Error(`${path} is damaged at byte ${at}: an entry reaches beyond the device`);
      }
      const isDiscard = (flags & FLAG_DISCARD) !== 0n;
      const dataBytes = isDiscard ? 0 : length;
      if (dataAt + dataBytes > size) break; // cut short
      if (isDiscard) entries.push({ kind: 'discard', offset, length });
      else if (length > 0) entries.push({ kind: 'write', offset, length, dataAt });
      if ((flags & FLAG_FLUSH) !== 0n) entries.push({ kind: 'flush' });
      at = dataAt + dataBytes;
    }
    return entries;
  } finally {
    closeSync(file);
  }
}

/** True when the data of this write are all zero. */
export function isZeroWrite(path: string, entry: BlockLogEntry & { kind: 'write' }): boolean {
  const file = openSync(path, 'r');
  try {
    for (let done = 0; done < entry.length; done += READ_BYTES) {
      const bytes = readAt(file, entry.dataAt + done, Math.min(READ_BYTES, entry.length - done));
      if (!bytes.every((byte) => byte === 0)) return false;
    }
    return true;
  } finally {
    closeSync(file);
  }
}

/** How many bytes of a device of `deviceBytes` the entries of `kinds` have touched. */
export function touchedBytes(
  entries: readonly BlockLogEntry[],
  kinds: readonly ('write' | 'discard')[],
  deviceBytes: number,
): number {
  const ranges = entries
    .filter((entry) => entry.kind !== 'flush')
    .filter((entry) => kinds.includes(entry.kind))
    .map((entry) => [entry.offset, Math.min(entry.offset + entry.length, deviceBytes)] as const)
    .sort((a, b) => a[0] - b[0]);
  let touched = 0;
  let end = 0;
  for (const [from, to] of ranges) {
    touched += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return touched;
}

function readSuper(raw: Buffer, path: string): number {
  const magic = raw.readBigUInt64LE(0);
  const version = raw.readBigUInt64LE(8);
  const sectorBytes = raw.readUInt32LE(24);
  if (magic !== MAGIC || version !== VERSION) {
    throw new Error(`${path} is no block log: magic ${magic.toString(16)}, version ${version}`);
  }
  if (sectorBytes < SECTOR_BYTES_MIN || sectorBytes > SECTOR_BYTES_MAX) {
    throw new Error(`${path} has sectors of ${sectorBytes} bytes; expected 512 to 4096`);
  }
  return sectorBytes;
}

function readAt(file: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, at);
  return bytes;
}
