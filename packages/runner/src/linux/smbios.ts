/**
 * Structures of the SMBIOS table that no file of /sys has by itself (DMTF DSP0134, 3.6). Firmware
 * writes the table, and firmware errs: an unreadable structure is left out, and nothing throws.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { MemoryModuleSchema } from '@rackwright/messages';
import { cleanText } from './sys-block.ts';

export type MemoryModule = MessageInitShape<typeof MemoryModuleSchema>;

/** §6.1.2: type, length of the formatted area with this header, handle. */
const headerBytes = 4;
const endOfTable = 127;
const memoryDevice = 17;
/** Structures that are looked at; the table of a large machine has a few hundred. */
const structuresMax = 4096;
/** Longer than the largest one seen in the field by far. */
const tableBytesMax = 1024 * 1024;

/** §7.18, table 76. */
const at = {
  size: 0x0c,
  slot: 0x10,
  maker: 0x17,
  serial: 0x18,
  part: 0x1a,
  extended: 0x1c,
} as const;
const sizeUnknown = 0xffff;
const sizeIsExtended = 0x7fff;
const sizeInKiB = 0x8000;

interface Structure {
  readonly type: number;
  readonly formatted: Uint8Array;
  readonly strings: readonly string[];
}

/** Modules in their slots; empty slots, and those of unknown size, are left out. */
export function memoryModulesIn(table: Uint8Array): MemoryModule[] {
  return structuresIn(table).flatMap((each) => {
    const sizeBytes = each.type === memoryDevice ? sizeOf(each.formatted) : 0n;
    if (sizeBytes === 0n) return [];
    const text = (offset: number): string => each.strings[(each.formatted[offset] ?? 0) - 1] ?? '';
    return [
      {
        slot: text(at.slot),
        manufacturer: text(at.maker),
        model: text(at.part),
        serial: text(at.serial),
        sizeBytes,
      },
    ];
  });
}

function sizeOf(formatted: Uint8Array): bigint {
  if (formatted.length < at.size + 2) return 0n;
  const fields = new DataView(formatted.buffer, formatted.byteOffset, formatted.length);
  const size = fields.getUint16(at.size, true);
  if (size === sizeUnknown) return 0n;
  if (size === sizeIsExtended) {
    if (formatted.length < at.extended + 4) return 0n;
    return BigInt(fields.getUint32(at.extended, true) & 0x7fff_ffff) << 20n;
  }
  const count = BigInt(size & ~sizeInKiB);
  return (size & sizeInKiB) === 0 ? count << 20n : count << 10n;
}

/** §6.1: each structure is its formatted area, then its strings, then an empty string. */
function structuresIn(table: Uint8Array): readonly Structure[] {
  const found: Structure[] = [];
  if (table.length > tableBytesMax) return found;
  let start = 0;
  while (start + headerBytes <= table.length && found.length < structuresMax) {
    const [type = endOfTable, length = 0] = table.subarray(start);
    const stringsStart = start + length;
    if (type === endOfTable || length < headerBytes || stringsStart > table.length) break;
    const end = endOfStrings(table, stringsStart);
    if (end === undefined) break;
    const formatted = table.subarray(start, stringsStart);
    found.push({ type, formatted, strings: stringsIn(table.subarray(stringsStart, end)) });
    start = end;
  }
  return found;
}

/** The offset behind the two zero bytes that end them; undefined: there are none. */
function endOfStrings(table: Uint8Array, start: number): number | undefined {
  for (let index = start; index + 1 < table.length; index += 1) {
    if (table[index] === 0 && table[index + 1] === 0) return index + 2;
  }
  return undefined;
}

function stringsIn(bytes: Uint8Array): readonly string[] {
  return new TextDecoder('latin1').decode(bytes).split('\0').map(cleanText);
}
