/**
 * The disk content of a qcow2 file, from its first byte to its last.
 *
 * 1. One L2 table at a time is held, so the memory does not grow with the disk.
 * 2. Every place that a table names is checked against the file before it is read.
 * 3. A cluster that the file does not have is zeros, because a backing file is refused.
 */
import { inflateRawSync, zstdDecompressSync } from 'node:zlib';
import type { Content } from '../content.ts';
import { ImageError } from '../failure.ts';
import type { Ranges } from '../ranges.ts';
import { headerBytesMax, parseHeader, type Qcow2Header } from './header.ts';
import { zstdFrameBytes } from './zstd-frame.ts';

export interface Qcow2Image {
  readonly header: Qcow2Header;
  /** The disk from its first byte to `header.sizeBytes`. Bytes are valid until the next piece. */
  content(): AsyncGenerator<Content, void, undefined>;
}

const entryBytes = 8;
const sectorBytes = 512;
const zeroFlag = 1;
const compressedFlag = 0x4000_0000;
/** Bits 9 to 55 of an entry, in two halves. */
const highMask = 0x00ff_ffff;
const lowMask = 0xffff_fe00;

/** Reads header and first table. Throws `ImageError`. */
export async function openQcow2(file: Ranges): Promise<Qcow2Image> {
  const header = parseHeader(await file.read(0, Math.min(headerBytesMax, file.sizeBytes)));
  const l1Bytes = header.l1Entries * entryBytes;
  // A copy: the bytes of a reading are valid only until the next.
  const l1 = new DataView(new Uint8Array(await file.read(header.l1Offset, l1Bytes)).buffer);
  return { header, content: () => contentOf(file, header, l1) };
}

async function* contentOf(
  file: Ranges,
  header: Qcow2Header,
  l1: DataView,
): AsyncGenerator<Content, void, undefined> {
  const clusterBytes = 2 ** header.clusterBits;
  const perTable = (clusterBytes / entryBytes) * clusterBytes;
  for (let index = 0; index < header.l1Entries; index += 1) {
    const start = index * perTable;
    const length = Math.min(perTable, header.sizeBytes - start);
    const table = offsetIn(l1, index);
    if (table === 0) {
      yield { kind: 'zeros', length };
      continue;
    }
    checkAligned(table, clusterBytes);
    const entries = new DataView(new Uint8Array(await file.read(table, clusterBytes)).buffer);
    yield* tableContent(file, header, entries, length);
  }
}

async function* tableContent(
  file: Ranges,
  header: Qcow2Header,
  entries: DataView,
  length: number,
): AsyncGenerator<Content, void, undefined> {
  const clusterBytes = 2 ** header.clusterBits;
  for (let at = 0, index = 0; at < length; at += clusterBytes, index += 1) {
    const wanted = Math.min(clusterBytes, length - at);
    const bytes = await clusterOf(file, header, entries, index);
    if (bytes === undefined) yield { kind: 'zeros', length: wanted };
    else yield { kind: 'bytes', bytes: bytes.subarray(0, wanted) };
  }
}

/** One cluster; undefined: it is zeros. */
async function clusterOf(
  file: Ranges,
  header: Qcow2Header,
  entries: DataView,
  index: number,
): Promise<Uint8Array | undefined> {
  const clusterBytes = 2 ** header.clusterBits;
  const high = entries.getUint32(index * entryBytes);
  const low = entries.getUint32(index * entryBytes + 4);
  if ((high & compressedFlag) !== 0) {
    return unpack(header, await compressedBytes(file, header, (BigInt(high) << 32n) | BigInt(low)));
  }
  if (header.version === 3 && (low & zeroFlag) !== 0) return undefined;
  const offset = offsetIn(entries, index);
  if (offset === 0) return undefined;
  checkAligned(offset, clusterBytes);
  // The last cluster of a file may be cut where the file ends.
  const there = Math.min(clusterBytes, Math.max(0, file.sizeBytes - offset));
  const bytes = await file.read(offset, there || clusterBytes);
  if (there === clusterBytes) return bytes;
  const whole = new Uint8Array(clusterBytes);
  whole.set(bytes);
  return whole;
}

async function compressedBytes(
  file: Ranges,
  { clusterBits }: Qcow2Header,
  entry: bigint,
): Promise<Uint8Array> {
  const offsetBits = 62n - BigInt(clusterBits - 8);
  const offset = Number(entry & ((1n << offsetBits) - 1n));
  const sectors = Number((entry & ((1n << 62n) - 1n)) >> offsetBits) + 1;
  const length = sectors * sectorBytes - (offset % sectorBytes);
  return await file.read(offset, Math.min(length, Math.max(1, file.sizeBytes - offset)));
}

function unpack({ clusterBits, compression }: Qcow2Header, bytes: Uint8Array): Uint8Array {
  const maxOutputLength = 2 ** clusterBits;
  let unpacked: Uint8Array;
  try {
    unpacked =
      compression === 'zstd'
        ? zstdDecompressSync(bytes.subarray(0, zstdFrameBytes(bytes)), { maxOutputLength })
        : inflateRawSync(bytes, { maxOutputLength });
  } catch (cause) {
    throw new ImageError('malformed', 'a compressed cluster is broken', { cause });
  }
  if (unpacked.length === maxOutputLength) return unpacked;
  throw new ImageError('malformed', `a compressed cluster has ${unpacked.length} bytes`);
}

function offsetIn(table: DataView, index: number): number {
  const high = table.getUint32(index * entryBytes) & highMask;
  const low = table.getUint32(index * entryBytes + 4) & lowMask;
  return high * 2 ** 32 + (low >>> 0);
}

function checkAligned(offset: number, clusterBytes: number): void {
  if (offset % clusterBytes === 0) return;
  throw new ImageError('malformed', `the qcow2 file has a cluster at ${offset}, within another`);
}
