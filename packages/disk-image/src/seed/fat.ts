/**
 * A FAT file system with a few files, made whole: it carries first-boot data.
 *
 * 1. The same files give the same bytes: times are fixed, nothing is random.
 * 2. Every name is written as a long name, so that its case survives.
 */
import { ImageError } from '../failure.ts';

export interface SeedFile {
  /** With "/" between folders. */
  readonly path: string;
  readonly content: Uint8Array;
}

export interface FatRequest {
  readonly sizeBytes: number;
  /** The block size of the disk; the kernel mounts no FAT with smaller ones. */
  readonly blockBytes: number;
  /** At most 11 characters. */
  readonly label: string;
  readonly files: readonly SeedFile[];
}

interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: Map<string, Uint8Array>;
}

interface Layout {
  readonly blockBytes: number;
  readonly blocks: number;
  readonly fatBlocks: number;
  readonly rootEntries: number;
  readonly clusters: number;
  /** The size of one entry of the table. */
  readonly bits: 12 | 16;
  readonly firstBlock: number;
}

const entryBytes = 32;
const reservedBlocks = 1;
const rootEntries = 512;
/** With fewer clusters the table has entries of 12 bits, with more of 16. */
const fat16ClustersMin = 4085;
const fat16ClustersMax = 65_524;
const media = 0xf8;
/** 1980-01-01, the first day that FAT knows. */
const fixedDate = 0x0021;
const attributes = { label: 0x08, folder: 0x10, file: 0x20, longName: 0x0f } as const;
const longNameCharacters = 13;
const nameCharactersMax = 255;

/** The file system, `sizeBytes` long. Throws `ImageError` when the files do not fit. */
export function makeFat({ sizeBytes, blockBytes, label, files }: FatRequest): Uint8Array {
  const layout = layoutOf(sizeBytes, blockBytes);
  const image = new Uint8Array(layout.blocks * blockBytes);
  writeBootSector(image, layout, label);
  const writer = new FatWriter(image, layout);
  const labelEntry = shortEntry(label.padEnd(11), attributes.label, 0, 0);
  writer.writeRoot(treeOf(files), labelEntry);
  return image;
}

function layoutOf(sizeBytes: number, blockBytes: number): Layout {
  const blocks = Math.floor(sizeBytes / blockBytes);
  const rootBlocks = (rootEntries * entryBytes) / blockBytes;
  const rough = blocks - reservedBlocks - rootBlocks;
  // One cluster is one block.
  const bits = rough - Math.ceil((rough * 4) / blockBytes) >= fat16ClustersMin ? 16 : 12;
  const fatBlocks = Math.ceil(((rough + 2) * bits) / 8 / blockBytes);
  const firstBlock = reservedBlocks + 2 * fatBlocks + rootBlocks;
  const clusters = blocks - firstBlock;
  const isSound = bits === 12 ? clusters < fat16ClustersMin : clusters >= fat16ClustersMin;
  if (clusters < 1 || clusters > fat16ClustersMax || !isSound) {
    throw new ImageError('badSeed', `no FAT file system of ${sizeBytes} bytes can be made`);
  }
  return { blockBytes, blocks, fatBlocks, rootEntries, clusters, bits, firstBlock };
}

function writeBootSector(image: Uint8Array, layout: Layout, label: string): void {
  const view = new DataView(image.buffer);
  image.set([0xeb, 0x3c, 0x90]);
  image.set(Buffer.from('RACKWRIT'), 3);
  view.setUint16(11, layout.blockBytes, true);
  view.setUint8(13, 1);
  view.setUint16(14, reservedBlocks, true);
  view.setUint8(16, 2);
  view.setUint16(17, layout.rootEntries, true);
  view.setUint16(19, layout.blocks < 0x1_0000 ? layout.blocks : 0, true);
  view.setUint8(21, media);
  view.setUint16(22, layout.fatBlocks, true);
  view.setUint16(24, 32, true);
  view.setUint16(26, 64, true);
  view.setUint32(32, layout.blocks < 0x1_0000 ? 0 : layout.blocks, true);
  view.setUint8(36, 0x80);
  view.setUint8(38, 0x29);
  view.setUint32(39, 0x5241_434b, true);
  image.set(Buffer.from(label.padEnd(11)), 43);
  image.set(Buffer.from(layout.bits === 16 ? 'FAT16   ' : 'FAT12   '), 54);
  image.set([0x55, 0xaa], 510);
}

function treeOf(files: readonly SeedFile[]): Folder {
  const root: Folder = { folders: new Map(), files: new Map() };
  for (const { path, content } of files) {
    const names = path.split('/');
    const name = names.pop() ?? '';
    let folder = root;
    for (const each of names) {
      checkName(each, path);
      const next: Folder = folder.folders.get(each) ?? { folders: new Map(), files: new Map() };
      folder.folders.set(each, next);
      folder = next;
    }
    checkName(name, path);
    if (folder.files.has(name) || folder.folders.has(name)) {
      throw new ImageError('badSeed', `the file ${path} is there twice`);
    }
    folder.files.set(name, content);
  }
  return root;
}

function checkName(name: string, path: string): void {
  const isPlain = /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) && !name.endsWith('.');
  if (isPlain && name.length <= nameCharactersMax) return;
  throw new ImageError(
    'badSeed',
    `"${path.slice(0, 100)}" is no name for a file of first-boot data`,
  );
}

class FatWriter {
  readonly #image: Uint8Array;
  readonly #layout: Layout;
  #nextCluster = 2;

  constructor(image: Uint8Array, layout: Layout) {
    this.#image = image;
    this.#layout = layout;
    // The two entries before the first cluster.
    this.#link(0, 0xff00 | media);
    this.#link(1, 0xffff);
  }

  writeRoot(root: Folder, labelEntry: Uint8Array): void {
    const { blockBytes, fatBlocks, rootEntries: entries } = this.#layout;
    const bytes = Buffer.concat([labelEntry, ...this.#entriesOf(root, 0)]);
    if (bytes.length > entries * entryBytes) throw noRoom();
    this.#image.set(bytes, (reservedBlocks + 2 * fatBlocks) * blockBytes);
  }

  /** Writes the content of a folder, and returns its entries. */
  #entriesOf(folder: Folder, ownCluster: number): Uint8Array[] {
    const entries: Uint8Array[] = [];
    let count = 0;
    for (const [name, inner] of folder.folders) {
      count += 1;
      entries.push(
        ...namedEntries(name, count, attributes.folder, this.#folder(inner, ownCluster)),
      );
    }
    for (const [name, content] of folder.files) {
      count += 1;
      const extent = { cluster: this.#store(content), sizeBytes: content.length };
      entries.push(...namedEntries(name, count, attributes.file, extent));
    }
    return entries;
  }

  /** A folder's size is not known before its content, so it gets its cluster first. */
  #folder(folder: Folder, parentCluster: number): Extent {
    const cluster = this.#take(1);
    const entries = [
      shortEntry('.'.padEnd(11), attributes.folder, cluster, 0),
      shortEntry('..'.padEnd(11), attributes.folder, parentCluster, 0),
      ...this.#entriesOf(folder, cluster),
    ];
    const bytes = Buffer.concat(entries);
    const { blockBytes } = this.#layout;
    this.#put(cluster, bytes.subarray(0, blockBytes));
    if (bytes.length > blockBytes) {
      const more = this.#store(bytes.subarray(blockBytes));
      this.#link(cluster, more);
    }
    return { cluster, sizeBytes: 0 };
  }

  /** The first cluster of the content; 0 when it is empty. */
  #store(content: Uint8Array): number {
    const count = Math.ceil(content.length / this.#layout.blockBytes);
    if (count === 0) return 0;
    const first = this.#take(count);
    this.#put(first, content);
    return first;
  }

  #put(cluster: number, content: Uint8Array): void {
    const { blockBytes, firstBlock } = this.#layout;
    this.#image.set(content, (firstBlock + cluster - 2) * blockBytes);
  }

  /** A chain of clusters that follow one another. */
  #take(count: number): number {
    const first = this.#nextCluster;
    if (first - 2 + count > this.#layout.clusters) throw noRoom();
    this.#nextCluster += count;
    for (let at = first; at < this.#nextCluster; at += 1) {
      this.#link(at, at + 1 === this.#nextCluster ? 0xffff : at + 1);
    }
    return first;
  }

  #link(cluster: number, next: number): void {
    const { blockBytes, fatBlocks, bits } = this.#layout;
    for (const table of [0, 1]) {
      const start = (reservedBlocks + table * fatBlocks) * blockBytes;
      if (bits === 16) {
        this.#image.set([next & 0xff, next >> 8], start + 2 * cluster);
        continue;
      }
      const at = start + Math.floor((cluster * 3) / 2);
      const low = this.#image[at] ?? 0;
      const high = this.#image[at + 1] ?? 0;
      const pair =
        cluster % 2 === 0
          ? [next & 0xff, (high & 0xf0) | ((next >> 8) & 0x0f)]
          : [(low & 0x0f) | ((next & 0x0f) << 4), (next >> 4) & 0xff];
      this.#image.set(pair, at);
    }
  }
}

interface Extent {
  readonly cluster: number;
  readonly sizeBytes: number;
}

/** The pieces of the long name, the last one first, and the short entry. */
function namedEntries(
  name: string,
  count: number,
  attribute: number,
  extent: Extent,
): Uint8Array[] {
  // Unique in its folder; it is never read.
  const extension = attribute === attributes.folder ? '' : 'DAT';
  const short = `RW${String(count).padStart(6, '0')}${extension}`;
  const entry = shortEntry(short.padEnd(11), attribute, extent.cluster, extent.sizeBytes);
  const checksum = entry
    .subarray(0, 11)
    .reduce((sum, byte) => ((((sum & 1) << 7) | (sum >> 1)) + byte) & 0xff, 0);
  const pieces = Math.ceil(name.length / longNameCharacters);
  const entries: Uint8Array[] = [];
  for (let piece = pieces; piece >= 1; piece -= 1) {
    const text = name.slice((piece - 1) * longNameCharacters, piece * longNameCharacters);
    entries.push(longEntry(text, piece | (piece === pieces ? 0x40 : 0), checksum));
  }
  return [...entries, entry];
}

function longEntry(text: string, order: number, checksum: number): Uint8Array {
  const codes = Array.from({ length: longNameCharacters }, (_, index) => {
    if (index === text.length) return 0;
    return index > text.length ? 0xffff : text.charCodeAt(index);
  });
  const entry = new Uint8Array(entryBytes);
  const view = new DataView(entry.buffer);
  view.setUint8(0, order);
  view.setUint8(11, attributes.longName);
  view.setUint8(13, checksum);
  const offsets = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
  for (const [index, code] of codes.entries()) view.setUint16(offsets[index] ?? 0, code, true);
  return entry;
}

function shortEntry(
  name: string,
  attribute: number,
  cluster: number,
  sizeBytes: number,
): Uint8Array {
  const entry = new Uint8Array(entryBytes);
  const view = new DataView(entry.buffer);
  entry.set(Buffer.from(name, 'latin1'));
  view.setUint8(11, attribute);
  for (const at of [16, 18, 24]) view.setUint16(at, fixedDate, true);
  view.setUint16(26, cluster, true);
  view.setUint32(28, sizeBytes, true);
  return entry;
}

function noRoom(): ImageError {
  return new ImageError('badSeed', 'the first-boot data does not fit into its file system');
}
