/**
 * The partition table of the first sector: four entries, and whether they announce a GUID table.
 */
import { ImageError } from '../failure.ts';

export interface MbrPartition {
  /** From 1; the place in the table. */
  readonly number: number;
  readonly type: number;
  readonly active: boolean;
  readonly firstBlock: number;
  /** Included. */
  readonly lastBlock: number;
}

export const mbrTypes = { protective: 0xee, efiSystem: 0xef, fat16: 0x0e, swap: 0x82 } as const;
/** Partitions that hold partitions. */
export const extendedTypes: readonly number[] = [0x05, 0x0f, 0x85];

const tableOffset = 446;
const entryBytes = 16;
const entries = 4;
/** Blocks are numbers of 32 bits. */
export const mbrBlocksMax = 2 ** 32 - 1;

/** Whether the first sector ends as one with a table, or with the code of a boot loader, does. */
export function hasBootSignature(head: Uint8Array): boolean {
  return head[510] === 0x55 && head[511] === 0xaa;
}

/**
 * The partitions; empty when the sector holds no table: none at all, or the boot sector of a file
 * system, whose code is in the place of a table.
 */
export function parseMbr(head: Uint8Array): MbrPartition[] {
  if (!hasBootSignature(head) || head.length < 512) return [];
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const partitions: MbrPartition[] = [];
  for (let number = 1; number <= entries; number += 1) {
    const at = tableOffset + (number - 1) * entryBytes;
    const flag = view.getUint8(at);
    const type = view.getUint8(at + 4);
    const firstBlock = view.getUint32(at + 8, true);
    const blocks = view.getUint32(at + 12, true);
    if (flag !== 0 && flag !== 0x80) return [];
    if (type === 0 || blocks === 0) continue;
    const lastBlock = firstBlock + blocks - 1;
    partitions.push({ number, type, active: flag === 0x80, firstBlock, lastBlock });
  }
  return partitions;
}

/** Writes an entry into the first sector `head`. */
export function writeMbrEntry(head: Uint8Array, partition: MbrPartition): void {
  const { number, type, active, firstBlock, lastBlock } = partition;
  if (lastBlock >= mbrBlocksMax) {
    throw new ImageError('unsupported', 'an MBR partition table cannot name blocks so far away');
  }
  const at = tableOffset + (number - 1) * entryBytes;
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const chs = Uint8Array.of(0xfe, 0xff, 0xff);
  view.setUint8(at, active ? 0x80 : 0);
  head.set(chs, at + 1);
  view.setUint8(at + 4, type);
  head.set(chs, at + 5);
  view.setUint32(at + 8, firstBlock, true);
  view.setUint32(at + 12, lastBlock - firstBlock + 1, true);
}

/** The number of an empty entry; undefined: all four are taken. */
export function freeMbrNumber(partitions: readonly MbrPartition[]): number | undefined {
  return [1, 2, 3, 4].find((number) => partitions.every((each) => each.number !== number));
}
