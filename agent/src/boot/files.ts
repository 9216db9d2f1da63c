/**
 * The served files, found once at the start: a request can only name a listed file, so no path on
 * disk is ever made from a client's bytes.
 */
import { createHash } from 'node:crypto';
import { makeBootMedium } from '@rackwright/disk-image';
import type { Disk, FileSlice } from '@rackwright/platform';
import { type BootConfig, loaderBytesMaxDefault, type NamedFile } from './config.ts';
import { mediumName } from './medium-name.ts';
import { RaspberryPiFiles } from './raspberry-pi.ts';

export type ServedFile =
  | { readonly kind: 'memory'; readonly bytes: Uint8Array; readonly version?: string }
  | {
      readonly kind: 'disk';
      readonly path: string;
      readonly sizeBytes: number;
      /** Of a file that never changes under its name; for other files it is read each time. */
      readonly version?: string;
      /** Present for a file that is still being fetched. */
      readonly readable?: FileSlice['readable'];
    };

/** A blob of an image on the disk; with `readable` it is still being fetched. */
export interface ImageBlob {
  readonly path: string;
  readonly sizeBytes: number;
  readonly readable?: FileSlice['readable'];
}

/**
 * Finds the blob of this hash. `later`: its fetch has begun or left a part, and the reader has to
 * wait. A blob that our disk has lost while a runner was at work is fetched again.
 */
export type FindImageBlob = (hex: string) => ImageBlob | 'later' | undefined;

export interface ServedFiles {
  /** For TFTP: in memory only. */
  readonly loaders: ReadonlyMap<string, Uint8Array>;
  /** For HTTP: everything. */
  readonly all: ReadonlyMap<string, ServedFile>;
  /** The files of a Raspberry Pi's firmware, in memory; undefined: there are none. */
  readonly raspberryPi: RaspberryPiFiles | undefined;
  /** Name of the CD that hosts boot from by virtual media; undefined: there is none. */
  readonly mediumName: string | undefined;
}

/** Throws an Error that names the file when one is missing or the loaders are too large. */
export async function openFiles(disk: Disk, config: BootConfig): Promise<ServedFiles> {
  const loaders = new Map<string, Uint8Array>();
  const all = new Map<string, ServedFile>();
  const read = boundedReader(disk, 'boot loaders', config.loaderBytesMax);
  for (const file of config.loaderFiles) {
    const { name, path } = file;
    const version = (await disk.stat(path))?.version;
    const bytes = await read(file);
    loaders.set(name, bytes);
    all.set(name, { kind: 'memory', bytes, ...(version === undefined ? {} : { version }) });
  }
  for (const { name, path } of config.files) {
    const found = await disk.stat(path);
    if (found === undefined) throw missing(name, path);
    all.set(name, { kind: 'disk', path, sizeBytes: found.sizeBytes });
  }
  const medium = bootMedium(config, loaders);
  if (medium !== undefined) all.set(medium.name, medium.file);
  const raspberryPi = await raspberryPiFiles(disk, config);
  return { loaders, all, raspberryPi, mediumName: medium?.name };
}

async function raspberryPiFiles(
  disk: Disk,
  { raspberryPi }: BootConfig,
): Promise<RaspberryPiFiles | undefined> {
  if (raspberryPi === undefined) return undefined;
  const read = boundedReader(disk, 'files for a Raspberry Pi', raspberryPi.fileBytesMax);
  const files = new Map<string, Uint8Array>();
  for (const file of raspberryPi.files) files.set(file.name, await read(file));
  return new RaspberryPiFiles(files);
}

/** Reads files into memory; throws when one is missing, or when they are too large together. */
function boundedReader(disk: Disk, fileKind: string, bytesMax = loaderBytesMaxDefault) {
  let bytesUsed = 0;
  return async ({ name, path }: NamedFile): Promise<Uint8Array> => {
    const bytes = await disk.read(path);
    if (bytes === undefined) throw missing(name, path);
    bytesUsed += bytes.length;
    if (bytesUsed <= bytesMax) return bytes;
    throw new Error(`${fileKind} up to ${name} have ${bytesUsed} bytes, limit ${bytesMax}`);
  };
}

/**
 * Its name has the digest of its content, because BMCs keep files that they have fetched. Throws
 * ImageError.
 */
function bootMedium(
  { virtualMedia }: BootConfig,
  loaders: ReadonlyMap<string, Uint8Array>,
): { readonly name: string; readonly file: ServedFile } | undefined {
  if (virtualMedia === undefined) return undefined;
  const { uefiX64 = '', uefiArm64 = '' } = virtualMedia.loaders;
  const [x64, arm64] = [loaders.get(uefiX64), loaders.get(uefiArm64)];
  const bytes = makeBootMedium({
    ...(x64 === undefined ? {} : { uefiX64: x64 }),
    ...(arm64 === undefined ? {} : { uefiArm64: arm64 }),
  });
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  return { name: mediumName(version), file: { kind: 'memory', bytes, version } };
}

function missing(name: string, path: string): Error {
  return new Error(`boot file ${name} is missing at ${path}`);
}
