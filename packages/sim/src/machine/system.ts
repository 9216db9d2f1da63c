/**
 * The operating system of software machines: what an image for them holds, how their firmware
 * finds it on a disk, and what it does at its first start.
 *
 *     0        boot code: the words `bootCode`; a partition table of four entries; 55 aa
 *     1 MiB    the system's partition: one line of JSON (`SystemHeader`), then its body
 *     behind   a partition with the data of the first boot, made by the writer of the image
 *
 * S1 A system whose body is not whole does not start.
 * S2 It knows no more of the machine than what stands on its disk: whom it calls when it runs is
 *    in the first-boot data (NoCloud), where cloud-init looks for it.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFat } from './fat.ts';

const bootCode = 'a system of software machines';
const partitionOffset = 1024 * 1024;
const sectorBytes = 512;
const tableOffset = 446;
const tableEntryBytes = 16;
const tableEntries = 4;
const bootSignature = 0x55aa;
const partitionTypes = { system: 0x83, fat: 0x0e } as const;
/** The label under which cloud-init looks for NoCloud. */
const seedLabel = 'CIDATA';

/** What a system says of itself. */
export interface SystemName {
  readonly name: string;
  readonly version: string;
}

interface SystemHeader extends SystemName {
  readonly bodyBytes: number;
  /** SHA-256 of the body, lower-case hex. */
  readonly bodySha256: string;
}

/** What the firmware finds. */
export type FoundSystem =
  | { readonly kind: 'none' }
  | { readonly kind: 'broken'; readonly disk: string; readonly problem: string }
  | {
      readonly kind: 'system';
      readonly disk: string;
      readonly system: SystemName;
      readonly firstBoot: FirstBoot;
    };

/** The part of NoCloud that a software system follows. */
export interface FirstBoot {
  readonly hostName: string;
  readonly instanceId: string;
  /** Whom to tell that it runs; undefined: nobody. */
  readonly phoneHome: PhoneHome | undefined;
}

export interface PhoneHome {
  readonly url: string;
  readonly tries: number;
}

/** A raw disk image with the system. The same arguments give the same bytes. */
export function systemImage({ name, version }: SystemName, sizeBytes: number): Buffer {
  const image = Buffer.alloc(sizeBytes);
  const body = noise(`${name} ${version}`, Math.floor((sizeBytes - partitionOffset) / 2));
  const header: SystemHeader = {
    ...{ name, version, bodyBytes: body.length },
    bodySha256: createHash('sha256').update(body).digest('hex'),
  };
  image.write(bootCode);
  image.writeUInt16BE(bootSignature, 510);
  const entry = image.subarray(tableOffset, tableOffset + tableEntryBytes);
  entry.writeUInt8(partitionTypes.system, 4);
  entry.writeUInt32LE(partitionOffset / sectorBytes, 8);
  entry.writeUInt32LE((sizeBytes - partitionOffset) / sectorBytes, 12);
  const line = Buffer.from(`${JSON.stringify(header)}\n`);
  line.copy(image, partitionOffset);
  body.copy(image, partitionOffset + line.length);
  return image;
}

/** Looks at the disks in the order of their names, as firmware does. */
export function findSystem(diskFolder: string): FoundSystem {
  const files = readdirSync(diskFolder).filter((name) => name.endsWith('.img'));
  for (const file of files.toSorted()) {
    const content = readFileSync(join(diskFolder, file));
    if (!isBootable(content)) continue;
    return systemOn(content, file.replace(/\.img$/, ''));
  }
  return { kind: 'none' };
}

function isBootable(content: Buffer): boolean {
  if (content.length < partitionOffset) return false;
  if (content.readUInt16BE(510) !== bootSignature) return false;
  return content.toString('latin1', 0, bootCode.length) === bootCode;
}

function systemOn(content: Buffer, disk: string): FoundSystem {
  const partition = partitionOf(content, partitionTypes.system);
  if (partition === undefined) return { kind: 'broken', disk, problem: 'it has no partition' };
  const lineEnd = partition.indexOf('\n');
  const { name, version, bodyBytes, bodySha256 } = headerIn(partition.subarray(0, lineEnd));
  const body = partition.subarray(lineEnd + 1, lineEnd + 1 + bodyBytes);
  if (createHash('sha256').update(body).digest('hex') !== bodySha256) {
    return { kind: 'broken', disk, problem: 'its system is not whole' };
  }
  return { kind: 'system', disk, system: { name, version }, firstBoot: firstBootOn(content) };
}

function headerIn(line: Buffer): SystemHeader {
  try {
    return JSON.parse(line.toString()) as SystemHeader;
  } catch {
    return { name: '', version: '', bodyBytes: 0, bodySha256: '' };
  }
}

/** The first partition of that type in the table. */
function partitionOf(content: Buffer, type: number): Buffer | undefined {
  for (let number = 0; number < tableEntries; number += 1) {
    const entry = content.subarray(tableOffset + number * tableEntryBytes);
    if (entry.readUInt8(4) !== type) continue;
    const start = entry.readUInt32LE(8) * sectorBytes;
    return content.subarray(start, start + entry.readUInt32LE(12) * sectorBytes);
  }
  return undefined;
}

function firstBootOn(content: Buffer): FirstBoot {
  const partition = partitionOf(content, partitionTypes.fat);
  const seed = partition === undefined ? undefined : readFat(partition);
  const files = seed?.label === seedLabel ? seed.files : new Map<string, Buffer>();
  const metaData = objectIn(files.get('meta-data'));
  const { phone_home: call } = objectIn(files.get('vendor-data')) as {
    phone_home?: { url: string; tries: number };
  };
  return {
    hostName: textAt(metaData, 'local-hostname'),
    instanceId: textAt(metaData, 'instance-id'),
    phoneHome: call === undefined ? undefined : { url: call.url, tries: call.tries },
  };
}

/** A document of one line of JSON, which is YAML, perhaps below a line with its kind. */
function objectIn(document: Buffer | undefined): Readonly<Record<string, unknown>> {
  const text = (document ?? '').toString().replace(/^#cloud-config\n/, '');
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

function textAt(document: Readonly<Record<string, unknown>>, key: string): string {
  const value = document[key];
  return typeof value === 'string' ? value : '';
}

/** Bytes that do not repeat and hardly compress. */
function noise(seed: string, sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  let state = createHash('sha512').update(seed).digest();
  for (let at = 0; at < sizeBytes; at += state.length) {
    state = createHash('sha512').update(state).digest();
    state.copy(bytes, at);
  }
  return bytes;
}
