/**
 * GUID partition tables (UEFI specification, chapter 5): read from the first bytes of a disk,
 * written for a disk of another size.
 *
 * 1. Nothing of a table is used before both of its checksums have been found right.
 * 2. Everything that is not changed on purpose stays byte for byte: attributes, names, reserved
 *    parts.
 */
import { crc32 } from 'node:zlib';
import { ImageError } from '../failure.ts';

export interface GptPartition {
  /** From 1; the place in the table. */
  readonly number: number;
  /** Lower case, as people write it. */
  readonly type: string;
  readonly id: string;
  readonly firstBlock: number;
  /** Included. */
  readonly lastBlock: number;
  readonly name: string;
}

export interface Gpt {
  readonly blockBytes: number;
  readonly diskId: string;
  readonly firstUsable: number;
  readonly partitions: readonly GptPartition[];
  /** The header, as it is in the image. */
  readonly header: Uint8Array;
  /** All entries, likewise. */
  readonly entries: Uint8Array;
  readonly entryBytes: number;
  readonly entriesBlock: number;
}

export const partitionTypes = {
  efiSystem: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b',
  biosBoot: '21686148-6449-6e6f-744e-656564454649',
  swap: '0657fd6d-a4ab-43c4-84e5-0933c84b4f4f',
  microsoftReserved: 'e3c9e316-0b5c-4db8-817d-f92df00215ae',
  basic: 'ebd0a0a2-b9e5-4433-87c0-68b6b72699c7',
} as const;

const signature = 'EFI PART';
const headerBytes = 92;
const entriesMax = 1024;
const entryBytesMax = 1024;
const usedEntryBytes = 128;
const nameCharacters = 36;

const at = {
  headerSize: 12,
  headerCrc: 16,
  ownBlock: 24,
  otherBlock: 32,
  firstUsable: 40,
  lastUsable: 48,
  diskId: 56,
  entriesBlock: 72,
  entryCount: 80,
  entryBytes: 84,
  entriesCrc: 88,
} as const;

/** Whether the second block holds the header of such a table. */
export function hasGpt(head: Uint8Array, blockBytes: number): boolean {
  const found = head.subarray(blockBytes, blockBytes + signature.length);
  return Buffer.from(found).toString('latin1') === signature;
}

/** Reads the table from the first bytes of an image. Throws `ImageError`. */
export function parseGpt(head: Uint8Array, blockBytes: number): Gpt {
  const header = new Uint8Array(head.subarray(blockBytes, 2 * blockBytes));
  if (header.length < blockBytes) throw broken('the image ends within its header');
  const view = viewOf(header);
  const size = view.getUint32(at.headerSize, true);
  if (size < headerBytes || size > blockBytes) throw broken(`a header of ${size} bytes`);
  if (view.getUint32(at.headerCrc, true) !== headerCrc(header, size)) {
    throw broken('the checksum of its header is wrong');
  }
  const entryCount = view.getUint32(at.entryCount, true);
  const entryBytes = view.getUint32(at.entryBytes, true);
  const isSane = entryBytes >= usedEntryBytes && entryBytes % 8 === 0;
  if (!isSane || entryBytes > entryBytesMax || entryCount > entriesMax) {
    throw broken(`${entryCount} entries of ${entryBytes} bytes`);
  }
  const entriesBlock = block(view, at.entriesBlock);
  const start = entriesBlock * blockBytes;
  const entries = new Uint8Array(head.subarray(start, start + entryCount * entryBytes));
  if (entriesBlock < 2 || entries.length !== entryCount * entryBytes) {
    throw new ImageError('unsupported', 'the partition table lies far from the beginning');
  }
  if (view.getUint32(at.entriesCrc, true) !== crc32(entries)) {
    throw broken('the checksum of its entries is wrong');
  }
  const firstUsable = block(view, at.firstUsable);
  const partitions = readPartitions(entries, entryBytes);
  checkPartitions(partitions, firstUsable);
  const diskId = guidOf(header, at.diskId);
  return { blockBytes, diskId, firstUsable, partitions, header, entries, entryBytes, entriesBlock };
}

/** A change of one entry: a partition that ends elsewhere, or a new one. */
export type GptChange =
  | { readonly kind: 'end'; readonly number: number; readonly lastBlock: number }
  | { readonly kind: 'add'; readonly partition: GptPartition };

export interface GptWrites {
  /** Header and entries at the beginning; offsets in bytes. */
  readonly primary: readonly { readonly offset: number; readonly bytes: Uint8Array }[];
  /** Entries and header at the disk's end, in whole blocks. */
  readonly backup: { readonly offset: number; readonly bytes: Uint8Array };
}

/** The last block that a partition may take on a disk of so many blocks. */
export function lastUsableBlock(gpt: Gpt, diskBlocks: number): number {
  return diskBlocks - 2 - Math.ceil(gpt.entries.length / gpt.blockBytes);
}

/** The table for a disk of so many blocks, with the changes made. */
export function encodeGpt(gpt: Gpt, diskBlocks: number, changes: readonly GptChange[]): GptWrites {
  const { blockBytes, entryBytes, entriesBlock } = gpt;
  const entries = new Uint8Array(gpt.entries);
  for (const change of changes) {
    const number = change.kind === 'end' ? change.number : change.partition.number;
    const entry = entries.subarray((number - 1) * entryBytes, number * entryBytes);
    if (change.kind === 'end') {
      viewOf(entry).setBigUint64(40, BigInt(change.lastBlock), true);
    } else {
      writeEntry(entry, change.partition);
    }
  }
  const lastUsable = lastUsableBlock(gpt, diskBlocks);
  const facts = { lastUsable, entriesCrc: crc32(entries) };
  const lastBlock = diskBlocks - 1;
  const primary = encodeHeader(gpt.header, { ...facts, own: 1, other: lastBlock, entriesBlock });
  const backupEntries = lastUsable + 1;
  const backup = new Uint8Array((diskBlocks - backupEntries) * blockBytes);
  const blocks = { own: lastBlock, other: 1, entriesBlock: backupEntries };
  backup.set(entries);
  backup.set(encodeHeader(gpt.header, { ...facts, ...blocks }), backup.length - blockBytes);
  return {
    primary: [
      { offset: blockBytes, bytes: primary },
      { offset: entriesBlock * blockBytes, bytes: entries },
    ],
    backup: { offset: backupEntries * blockBytes, bytes: backup },
  };
}

/** The number of the first empty entry; undefined: the table is full. */
export function freeNumber(gpt: Gpt): number | undefined {
  const used = new Set(gpt.partitions.map(({ number }) => number));
  const count = gpt.entries.length / gpt.entryBytes;
  for (let number = 1; number <= count; number += 1) if (!used.has(number)) return number;
  return undefined;
}

interface HeaderFacts {
  readonly own: number;
  readonly other: number;
  readonly lastUsable: number;
  readonly entriesBlock: number;
  readonly entriesCrc: number;
}

function encodeHeader(original: Uint8Array, facts: HeaderFacts): Uint8Array {
  const header = new Uint8Array(original);
  const view = viewOf(header);
  view.setBigUint64(at.ownBlock, BigInt(facts.own), true);
  view.setBigUint64(at.otherBlock, BigInt(facts.other), true);
  view.setBigUint64(at.lastUsable, BigInt(facts.lastUsable), true);
  view.setBigUint64(at.entriesBlock, BigInt(facts.entriesBlock), true);
  view.setUint32(at.entriesCrc, facts.entriesCrc, true);
  view.setUint32(at.headerCrc, headerCrc(header, view.getUint32(at.headerSize, true)), true);
  return header;
}

function headerCrc(header: Uint8Array, size: number): number {
  const copy = new Uint8Array(header.subarray(0, size));
  copy.fill(0, at.headerCrc, at.headerCrc + 4);
  return crc32(copy);
}

function readPartitions(entries: Uint8Array, entryBytes: number): GptPartition[] {
  const partitions: GptPartition[] = [];
  for (let number = 1; number * entryBytes <= entries.length; number += 1) {
    const entry = entries.subarray((number - 1) * entryBytes, number * entryBytes);
    if (entry.subarray(0, 16).every((byte) => byte === 0)) continue;
    const view = viewOf(entry);
    const name = Buffer.from(entry.subarray(56, 56 + 2 * nameCharacters)).toString('utf16le');
    partitions.push({
      number,
      type: guidOf(entry, 0),
      id: guidOf(entry, 16),
      firstBlock: block(view, 32),
      lastBlock: block(view, 40),
      name: name.split('\0')[0] ?? '',
    });
  }
  return partitions;
}

function checkPartitions(partitions: readonly GptPartition[], firstUsable: number): void {
  let before: GptPartition | undefined;
  for (const each of partitions.toSorted((left, right) => left.firstBlock - right.firstBlock)) {
    if (each.lastBlock < each.firstBlock || each.firstBlock < firstUsable) {
      throw broken(`partition ${each.number} goes from ${each.firstBlock} to ${each.lastBlock}`);
    }
    if (before !== undefined && each.firstBlock <= before.lastBlock) {
      throw broken(`partitions ${before.number} and ${each.number} lie over one another`);
    }
    before = each;
  }
}

function writeEntry(entry: Uint8Array, partition: GptPartition): void {
  entry.fill(0);
  entry.set(bytesOfGuid(partition.type), 0);
  entry.set(bytesOfGuid(partition.id), 16);
  const view = viewOf(entry);
  view.setBigUint64(32, BigInt(partition.firstBlock), true);
  view.setBigUint64(40, BigInt(partition.lastBlock), true);
  entry.set(Buffer.from(partition.name.slice(0, nameCharacters), 'utf16le'), 56);
}

/** The first three groups of a GUID are written backwards. */
const guidOrder = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15] as const;

function guidOf(bytes: Uint8Array, offset: number): string {
  const hex = guidOrder
    .map((index) => (bytes[offset + index] ?? 0).toString(16).padStart(2, '0'))
    .join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** A GUID as tables and device paths hold it. */
export function bytesOfGuid(guid: string): Uint8Array {
  const plain = Buffer.from(guid.replaceAll('-', ''), 'hex');
  return Uint8Array.from(guidOrder.map((index) => plain[index] ?? 0));
}

function block(view: DataView, offset: number): number {
  const value = Number(view.getBigUint64(offset, true));
  if (Number.isSafeInteger(value)) return value;
  throw broken('a block beyond every disk');
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function broken(problem: string): ImageError {
  return new ImageError('malformed', `the GUID partition table of the image is broken: ${problem}`);
}
