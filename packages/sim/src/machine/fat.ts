/**
 * Reads the files in the root folder of a FAT12 or FAT16 file system, as an operating system does.
 * Written apart from the code that makes such file systems, so that one checks the other.
 */

const entryBytes = 32;
/** A file system with fewer clusters has table entries of 12 bits. */
const fat16ClustersMin = 4085;
const attributes = { longName: 0x0f, label: 0x08, folder: 0x10 } as const;
const deleted = 0xe5;
/** The offsets of the 13 characters of a long-name entry. */
const characterOffsets = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];

export interface FatContent {
  readonly label: string;
  /** By their long names. */
  readonly files: ReadonlyMap<string, Buffer>;
}

interface Layout {
  readonly blockBytes: number;
  readonly clusterBytes: number;
  readonly tableAt: number;
  readonly rootAt: number;
  readonly rootEntries: number;
  readonly clustersAt: number;
  readonly bits: 12 | 16;
}

/** The label and the files of the root folder; undefined: this is no such file system. */
export function readFat(bytes: Buffer): FatContent | undefined {
  const layout = layoutOf(bytes);
  if (layout === undefined) return undefined;
  const files = new Map<string, Buffer>();
  let [label, longName] = ['', ''];
  for (let index = 0; index < layout.rootEntries; index += 1) {
    const at = layout.rootAt + index * entryBytes;
    const entry = bytes.subarray(at, at + entryBytes);
    const [first = 0, attribute = 0] = [entry[0], entry[11]];
    if (first === 0) break;
    if (first === deleted) continue;
    if (attribute === attributes.longName) {
      longName = `${charactersOf(entry)}${longName}`;
      continue;
    }
    const name = longName === '' ? entry.toString('latin1', 0, 11).trimEnd() : longName;
    longName = '';
    if ((attribute & attributes.label) !== 0) label = name;
    else if ((attribute & attributes.folder) === 0)
      files.set(name, contentOf(bytes, layout, entry));
  }
  return { label, files };
}

function layoutOf(bytes: Buffer): Layout | undefined {
  if (bytes.length < 512 || bytes.readUInt16BE(510) !== 0x55aa) return undefined;
  const blockBytes = bytes.readUInt16LE(11);
  const clusterBytes = blockBytes * bytes.readUInt8(13);
  const tables = bytes.readUInt8(16);
  if (blockBytes < 512 || clusterBytes === 0 || tables === 0) return undefined;
  const tableAt = bytes.readUInt16LE(14) * blockBytes;
  const rootEntries = bytes.readUInt16LE(17);
  const rootAt = tableAt + tables * bytes.readUInt16LE(22) * blockBytes;
  const clustersAt = rootAt + rootEntries * entryBytes;
  const blocks = bytes.readUInt16LE(19) || bytes.readUInt32LE(32);
  const clusters = Math.floor((blocks * blockBytes - clustersAt) / clusterBytes);
  const bits = clusters < fat16ClustersMin ? 12 : 16;
  return { blockBytes, clusterBytes, tableAt, rootAt, rootEntries, clustersAt, bits };
}

function charactersOf(entry: Buffer): string {
  const codes = characterOffsets.map((offset) => entry.readUInt16LE(offset));
  const end = codes.indexOf(0);
  return String.fromCharCode(...codes.slice(0, end < 0 ? codes.length : end));
}

/** Follows the chain of clusters; bytes beyond the size of the file are no part of it. */
function contentOf(bytes: Buffer, layout: Layout, entry: Buffer): Buffer {
  const sizeBytes = entry.readUInt32LE(28);
  const pieces: Buffer[] = [];
  let cluster = entry.readUInt16LE(26);
  for (let read = 0; read < sizeBytes; read += layout.clusterBytes) {
    const at = layout.clustersAt + (cluster - 2) * layout.clusterBytes;
    pieces.push(bytes.subarray(at, at + layout.clusterBytes));
    cluster = nextOf(bytes, layout, cluster);
  }
  return Buffer.concat(pieces).subarray(0, sizeBytes);
}

function nextOf(bytes: Buffer, { bits, tableAt }: Layout, cluster: number): number {
  if (bits === 16) return bytes.readUInt16LE(tableAt + 2 * cluster);
  const pair = bytes.readUInt16LE(tableAt + Math.floor((cluster * 3) / 2));
  return cluster % 2 === 0 ? pair & 0xfff : pair >> 4;
}
