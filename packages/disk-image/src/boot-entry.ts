/**
 * Boot entries of UEFI (specification 2.10, 3.1 and 10.3): an entry that starts a loader from a
 * partition, its position in the boot order, and the variables to write. Pure.
 *
 * 1. An earlier entry of ours, known by its description, is used again: a host that is imaged every
 *    day does not fill its variable store.
 * 2. The order keeps all its other entries.
 * 3. `afterNetwork` puts all entries that boot from the network before ours: where no BMC chooses
 *    for one boot, the host reaches the runner by its own order alone.
 */
import { ImageError } from './failure.ts';
import type { FittedPartition } from './table/fit.ts';
import { bytesOfGuid } from './table/gpt.ts';

/** A variable of the global vendor: name and content, without its attributes. */
export type EfiVariables = ReadonlyMap<string, Uint8Array>;

export interface BootEntry {
  /** The name in the firmware's menu; it identifies our entries. */
  readonly description: string;
  readonly partition: FittedPartition;
  readonly blockBytes: number;
  /** With backslashes, from the root of the partition. */
  readonly loader: string;
}

/** The path at which firmware looks for a loader that no entry names. */
export const removableLoader = {
  amd64: '\\EFI\\BOOT\\BOOTX64.EFI',
  arm64: '\\EFI\\BOOT\\BOOTAA64.EFI',
} as const;

/** The position of our entry in the boot order. */
export type BootPosition = 'first' | 'afterNetwork';

export interface VariableWrite {
  readonly name: string;
  readonly content: Uint8Array;
}

const active = 1;
const entriesMax = 0x1_0000;
const textCharactersMax = 255;

/** The name of our entry, and the variables to write for it. */
export interface BootEntryWrites {
  /** "Boot0003". */
  readonly name: string;
  /** In this order; empty: the entry is there already, in its position. */
  readonly writes: readonly VariableWrite[];
}

/** Throws `ImageError` for an entry that cannot be made. */
export function bootEntryWrites(
  variables: EfiVariables,
  entry: BootEntry,
  position: BootPosition,
): BootEntryWrites {
  const content = encodeEntry(entry);
  const number = ownNumber(variables, entry.description) ?? freeNumber(variables);
  const name = entryName(number);
  const order = orderOf(variables);
  const others = order.filter((each) => each !== number);
  const isBefore = (each: number) =>
    position === 'afterNetwork' && bootsFromNetwork(variables.get(entryName(each)));
  const wanted = [...others.filter(isBefore), number, ...others.filter((each) => !isBefore(each))];
  const writes: VariableWrite[] = [];
  const kept = variables.get(name);
  if (kept === undefined || !Buffer.from(kept).equals(content)) writes.push({ name, content });
  if (wanted.some((each, index) => each !== order[index])) {
    writes.push({ name: 'BootOrder', content: encodeOrder(wanted) });
  }
  return { name, writes };
}

function encodeEntry({ description, partition, blockBytes, loader }: BootEntry): Uint8Array {
  for (const text of [description, loader]) {
    if (text !== '' && text.length <= textCharactersMax && !text.includes('\0')) continue;
    throw new ImageError('unsupported', `"${text.slice(0, 100)}" cannot stand in a boot entry`);
  }
  if (partition.id === '') {
    throw new ImageError('unsupported', 'a boot entry needs a GUID partition table');
  }
  const disk = new Uint8Array(42);
  const view = new DataView(disk.buffer);
  disk.set([4, 1, disk.length, 0]);
  view.setUint32(4, partition.number, true);
  view.setBigUint64(8, BigInt(partition.offsetBytes / blockBytes), true);
  view.setBigUint64(16, BigInt(partition.sizeBytes / blockBytes), true);
  disk.set(bytesOfGuid(partition.id), 24);
  // A GUID table, and a signature that is a GUID.
  disk.set([2, 2], 40);
  const path = Buffer.from(`${loader}\0`, 'utf16le');
  const file = Buffer.concat([Uint8Array.of(4, 4, 0, 0), path]);
  file.writeUInt16LE(file.length, 2);
  const list = Buffer.concat([disk, file, Uint8Array.of(0x7f, 0xff, 4, 0)]);
  const start = Buffer.alloc(6);
  start.writeUInt32LE(active, 0);
  start.writeUInt16LE(list.length, 4);
  return Buffer.concat([start, Buffer.from(`${description}\0`, 'utf16le'), list]);
}

/** Nodes of a device path (UEFI 10.3.4): MAC address, IPv4, IPv6, URI. */
const networkNodes: ReadonlySet<number> = new Set([11, 12, 13, 24]);
/** Device types of a BIOS Boot Specification path (UEFI 10.3.6): network, boot vector. */
const networkDevices: ReadonlySet<number> = new Set([6, 0x80]);

/** Whether a load option's first device path leads over the network; false for any other bytes. */
function bootsFromNetwork(option: Uint8Array | undefined): boolean {
  if (option === undefined || option.length < optionStartBytes) return false;
  const view = new DataView(option.buffer, option.byteOffset, option.byteLength);
  let at = endOfText(view, optionStartBytes);
  const end = Math.min(option.length, at + view.getUint16(4, true));
  while (at + nodeStartBytes <= end) {
    const [type, subtype] = [view.getUint8(at), view.getUint8(at + 1)];
    const length = view.getUint16(at + 2, true);
    if (type === 0x7f || length < nodeStartBytes || at + length > end) return false;
    if (type === 3 && networkNodes.has(subtype)) return true;
    const isBios = type === 5 && subtype === 1 && length >= nodeStartBytes + 2;
    if (isBios && networkDevices.has(view.getUint16(at + nodeStartBytes, true))) return true;
    at += length;
  }
  return false;
}

/** Attributes, and the length of the device paths. */
const optionStartBytes = 6;
/** Type, subtype, and the length of the node. */
const nodeStartBytes = 4;

/** Behind the zero that ends a text in UTF-16; the end of the bytes where there is none. */
function endOfText(view: DataView, start: number): number {
  let at = start;
  while (at + 2 <= view.byteLength && view.getUint16(at, true) !== 0) at += 2;
  return Math.min(at + 2, view.byteLength);
}

/** The entry with this description. */
function ownNumber(variables: EfiVariables, description: string): number | undefined {
  const wanted = Buffer.from(`${description}\0`, 'utf16le');
  for (const [name, content] of variables) {
    const number = numberOf(name);
    if (number === undefined) continue;
    if (Buffer.from(content.subarray(6, 6 + wanted.length)).equals(wanted)) return number;
  }
  return undefined;
}

function freeNumber(variables: EfiVariables): number {
  for (let number = 0; number < entriesMax; number += 1) {
    if (!variables.has(entryName(number))) return number;
  }
  throw new ImageError('unsupported', 'the firmware has no boot entry left');
}

function entryName(number: number): string {
  return `Boot${number.toString(16).toUpperCase().padStart(4, '0')}`;
}

function numberOf(name: string): number | undefined {
  const [, digits] = /^Boot([0-9A-F]{4})$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

function orderOf(variables: EfiVariables): number[] {
  const content = variables.get('BootOrder') ?? new Uint8Array();
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  return Array.from({ length: Math.floor(content.length / 2) }, (_, index) =>
    view.getUint16(2 * index, true),
  );
}

function encodeOrder(order: readonly number[]): Uint8Array {
  const content = Buffer.alloc(2 * order.length);
  for (const [index, number] of order.entries()) content.writeUInt16LE(number, 2 * index);
  return content;
}
