/**
 * Makes the partition table of an image fill its disk, with room for first-boot data at the end.
 * Pure: from the first bytes of the image to the blocks to write.
 *
 * F1 Only the last partition grows, and only when nothing of it moves.
 * F2 The disk's first bytes are returned whole, to be written last: before that the disk does not
 *    count.
 */
import { createHash } from 'node:crypto';
import { ImageError } from '../failure.ts';
import {
  encodeGpt,
  freeNumber,
  type Gpt,
  type GptChange,
  hasGpt,
  lastUsableBlock,
  parseGpt,
  partitionTypes,
} from './gpt.ts';
import {
  extendedTypes,
  freeMbrNumber,
  type MbrPartition,
  mbrBlocksMax,
  mbrTypes,
  parseMbr,
  writeMbrEntry,
} from './mbr.ts';

export interface FitRequest {
  /** The beginning of the image; as much of it as is written last. */
  readonly head: Uint8Array;
  readonly diskBytes: number;
  /** The disk's logical block. */
  readonly blockBytes: number;
  readonly grow: boolean;
  /** Size and name of a partition at the end; absent: none. */
  readonly seed?: { readonly sizeBytes: number; readonly name: string };
}

/** A partition on the disk at the end. */
export interface FittedPartition {
  readonly number: number;
  /** GPT: the type's GUID; MBR: two hexadecimal digits. */
  readonly type: string;
  /** Empty in an MBR. */
  readonly id: string;
  readonly name: string;
  readonly offsetBytes: number;
  readonly sizeBytes: number;
}

export interface FittedTable {
  readonly kind: 'gpt' | 'mbr' | 'none';
  readonly head: Uint8Array;
  /** Beyond the head: the backup of a GUID table. */
  readonly writes: readonly { readonly offset: number; readonly bytes: Uint8Array }[];
  readonly partitions: readonly FittedPartition[];
  readonly grown?: { readonly number: number; readonly addedBytes: number };
  /** Why nothing grew, for people. */
  readonly notGrown?: string;
  readonly seed?: FittedPartition;
}

/** Partitions begin and end on bounds of so many bytes. */
const alignBytes = 1024 * 1024;

/** The blocks to write so that the table fits the disk. Throws `ImageError`. */
export function fitTable(request: FitRequest): FittedTable {
  const { head, blockBytes } = request;
  if (hasGpt(head, blockBytes)) return fitGpt(request, parseGpt(head, blockBytes));
  for (const other of [512, 4096]) {
    if (other === blockBytes || !hasGpt(head, other)) continue;
    const sizes = `blocks of ${other} bytes; the disk has blocks of ${blockBytes}`;
    throw new ImageError('unsupported', `the partition table of the image is for ${sizes}`);
  }
  const partitions = parseMbr(head);
  if (partitions.some(({ type }) => type === mbrTypes.protective)) {
    throw new ImageError('malformed', 'the image should have a GUID partition table, but has none');
  }
  if (partitions.length > 0) return fitMbr(request, partitions);
  if (request.seed !== undefined) {
    const problem = 'the image has no partition table, so there is no place for first-boot data';
    throw new ImageError('unsupported', problem);
  }
  const notGrown = 'the image has no partition table';
  return { kind: 'none', head: new Uint8Array(head), writes: [], partitions: [], notGrown };
}

/** The maximum end of the last partition, and the place of the seed behind it; in blocks. */
interface Room {
  readonly lastBlock: number;
  readonly seed?: { readonly firstBlock: number; readonly lastBlock: number };
}

function roomFor(request: FitRequest, usableLast: number, lastTaken: number): Room {
  const align = alignBytes / request.blockBytes;
  if (request.seed === undefined) {
    return { lastBlock: Math.floor((usableLast + 1) / align) * align - 1 };
  }
  const blocks = Math.ceil(request.seed.sizeBytes / request.blockBytes);
  const firstBlock = Math.floor((usableLast + 1 - blocks) / align) * align;
  if (firstBlock <= lastTaken) {
    const needed = `${request.seed.sizeBytes} bytes for first-boot data`;
    throw new ImageError('tooLarge', `behind the image the disk has no room of ${needed}`);
  }
  return { lastBlock: firstBlock - 1, seed: { firstBlock, lastBlock: firstBlock + blocks - 1 } };
}

const neverGrown: Readonly<Record<string, string>> = {
  [partitionTypes.efiSystem]: 'an EFI system partition',
  [partitionTypes.biosBoot]: 'a BIOS boot partition',
  [partitionTypes.swap]: 'swap',
  [partitionTypes.microsoftReserved]: 'reserved',
};

function fitGpt(request: FitRequest, gpt: Gpt): FittedTable {
  const { blockBytes, diskBytes, grow } = request;
  const diskBlocks = Math.floor(diskBytes / blockBytes);
  const usableLast = lastUsableBlock(gpt, diskBlocks);
  const last = gpt.partitions.reduce<Gpt['partitions'][number] | undefined>(
    (found, each) => (found === undefined || each.lastBlock > found.lastBlock ? each : found),
    undefined,
  );
  const lastTaken = last?.lastBlock ?? gpt.firstUsable - 1;
  if (lastTaken > usableLast) {
    throw new ImageError('tooLarge', `the partitions of the image end beyond the disk`);
  }
  const room = roomFor(request, usableLast, lastTaken);
  const changes: GptChange[] = [];
  const growth = growthOf(last, room.lastBlock, grow, neverGrown[last?.type ?? '']);
  if (growth.kind === 'grows') {
    changes.push({ kind: 'end', number: growth.number, lastBlock: growth.lastBlock });
  }
  const added = addedPartition(request, gpt, room);
  if (added !== undefined) changes.push({ kind: 'add', partition: added });
  const writes = encodeGpt(gpt, diskBlocks, changes);
  const head = new Uint8Array(request.head);
  for (const { offset, bytes } of writes.primary) head.set(bytes, offset);
  spanProtective(head, diskBlocks);
  const all = [...gpt.partitions, ...(added ? [added] : [])];
  all.sort((left, right) => left.number - right.number);
  const partitions = all.map((each) => ({
    number: each.number,
    type: each.type,
    id: each.id,
    name: each.name,
    ...bytesOf(grownEnd(each, growth), blockBytes),
  }));
  return {
    kind: 'gpt',
    head,
    writes: [writes.backup],
    partitions,
    ...describeGrowth(growth, blockBytes),
    ...seedOf(partitions, added?.number),
  };
}

function addedPartition(
  { seed }: FitRequest,
  gpt: Gpt,
  room: Room,
): Gpt['partitions'][number] | undefined {
  if (seed === undefined || room.seed === undefined) return undefined;
  const number = freeNumber(gpt);
  if (number === undefined) throw new ImageError('unsupported', 'the partition table is full');
  const id = derivedGuid(`${gpt.diskId} ${seed.name}`);
  return { number, type: partitionTypes.basic, id, name: seed.name, ...room.seed };
}

/** The same for the same image, so that a repeated attempt writes the same bytes. */
function derivedGuid(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The MBR in front of a GUID table covers the whole disk, as far as its fields allow. */
function spanProtective(head: Uint8Array, diskBlocks: number): void {
  const protective = parseMbr(head).find(({ type }) => type === mbrTypes.protective);
  if (protective === undefined) return;
  const lastBlock = Math.min(diskBlocks - 1, mbrBlocksMax - 1);
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  view.setUint32(
    446 + (protective.number - 1) * 16 + 12,
    lastBlock - protective.firstBlock + 1,
    true,
  );
}

function fitMbr(request: FitRequest, partitions: readonly MbrPartition[]): FittedTable {
  const { blockBytes, diskBytes, grow, seed } = request;
  if (blockBytes !== 512) {
    const problem = `the disk has blocks of ${blockBytes} bytes, and an MBR counts in those of 512`;
    throw new ImageError('unsupported', `${problem}: use an image with a GUID partition table`);
  }
  const diskBlocks = Math.min(Math.floor(diskBytes / blockBytes), mbrBlocksMax - 1);
  const last = partitions.reduce((found, each) =>
    each.lastBlock > found.lastBlock ? each : found,
  );
  if (last.lastBlock >= diskBlocks) {
    throw new ImageError('tooLarge', `the partitions of the image end beyond the disk`);
  }
  const room = roomFor(request, diskBlocks - 1, last.lastBlock);
  const fixed: Readonly<Record<number, string>> = {
    [mbrTypes.efiSystem]: 'an EFI system partition',
    [mbrTypes.swap]: 'swap',
  };
  const kind = extendedTypes.includes(last.type) ? 'an extended partition' : fixed[last.type];
  const reason = partitions.some((each) => overlaps(each, last)) ? 'in another one too' : kind;
  const growth = growthOf(last, room.lastBlock, grow, reason);
  const head = new Uint8Array(request.head);
  const fitted = partitions.map((each) => ({ ...each, ...grownEnd(each, growth) }));
  if (seed !== undefined && room.seed !== undefined) {
    const number = freeMbrNumber(partitions);
    if (number === undefined) throw new ImageError('unsupported', 'the partition table is full');
    fitted.push({ number, type: mbrTypes.fat16, active: false, ...room.seed });
  }
  for (const each of fitted) {
    const before = partitions.find(({ number }) => number === each.number);
    if (before === undefined || before.lastBlock !== each.lastBlock) writeMbrEntry(head, each);
  }
  const described = fitted.map((each) => ({
    number: each.number,
    type: each.type.toString(16).padStart(2, '0'),
    id: '',
    name: '',
    ...bytesOf(each, blockBytes),
  }));
  const seedNumber = fitted.length > partitions.length ? fitted.at(-1)?.number : undefined;
  return {
    kind: 'mbr',
    head,
    writes: [],
    partitions: described,
    ...describeGrowth(growth, blockBytes),
    ...seedOf(described, seedNumber),
  };
}

function overlaps(one: Extent, other: Extent): boolean {
  if (one.number === other.number) return false;
  return one.firstBlock <= other.lastBlock && other.firstBlock <= one.lastBlock;
}

type Growth =
  | {
      readonly kind: 'grows';
      readonly number: number;
      readonly lastBlock: number;
      readonly addedBlocks: number;
    }
  | { readonly kind: 'stays'; readonly reason: string };

interface Extent {
  readonly number: number;
  readonly firstBlock: number;
  readonly lastBlock: number;
}

function growthOf(
  last: Extent | undefined,
  lastBlock: number,
  wanted: boolean,
  fixed: string | undefined,
): Growth {
  if (!wanted) return { kind: 'stays', reason: 'nothing was to grow' };
  if (last === undefined) return { kind: 'stays', reason: 'the image has no partition' };
  if (fixed !== undefined) return { kind: 'stays', reason: `the last partition is ${fixed}` };
  const addedBlocks = lastBlock - last.lastBlock;
  if (addedBlocks <= 0) return { kind: 'stays', reason: 'the last partition ends with the disk' };
  return { kind: 'grows', number: last.number, lastBlock, addedBlocks };
}

function grownEnd<Kind extends Extent>(each: Kind, growth: Growth): Kind {
  const grows = growth.kind === 'grows' && growth.number === each.number;
  return grows ? { ...each, lastBlock: growth.lastBlock } : each;
}

function describeGrowth(
  growth: Growth,
  blockBytes: number,
): Pick<FittedTable, 'grown'> | Pick<FittedTable, 'notGrown'> {
  if (growth.kind === 'stays') return { notGrown: growth.reason };
  return { grown: { number: growth.number, addedBytes: growth.addedBlocks * blockBytes } };
}

function seedOf(
  partitions: readonly FittedPartition[],
  number: number | undefined,
): Pick<FittedTable, 'seed'> {
  const seed = partitions.find((each) => each.number === number);
  return seed === undefined ? {} : { seed };
}

function bytesOf(
  { firstBlock, lastBlock }: Extent,
  blockBytes: number,
): Pick<FittedPartition, 'offsetBytes' | 'sizeBytes'> {
  return {
    offsetBytes: firstBlock * blockBytes,
    sizeBytes: (lastBlock - firstBlock + 1) * blockBytes,
  };
}
