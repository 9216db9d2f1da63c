/**
 * One machine made of file disks, the production steps that erase it and read it again after a
 * power cycle, and a judge who reads the disks' files from outside.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StorageSign } from '@rackwright/erasure';
import type { Lie } from '../linux/file-disk-lies.ts';

export const blockBytes = 4_096;
const sectorBytes = 512;

/** The methods that erase a disk. */
export type DiskKind = 'discard' | 'overwrite' | 'format' | 'crypto';

export interface DiskDraft {
  name: string;
  serial: string;
  kind: DiskKind;
  /** The shown capacity, in blocks of 4 KiB. */
  blocks: number;
  /** Capacity that it has and does not show. */
  hiddenBlocks: number;
  /** Capacity that it shows and does not have. */
  missingBlocks: number;
  lies: Lie[];
  faults: object[];
  /** More fields of its description. */
  extra: Record<string, unknown>;
}

/** A disk on the shelf that takes the place of the disk `inPlaceOf`, or an own one. */
export interface SpareDraft {
  readonly name: string;
  readonly serial: string;
  readonly inPlaceOf: DiskDraft | undefined;
}

export interface BoxDraft {
  readonly disks: DiskDraft[];
  readonly spares: SpareDraft[];
  readonly signs: StorageSign[];
}

export function diskDraft(name: string, kind: DiskKind, blocks: number): DiskDraft {
  const none = { hiddenBlocks: 0, missingBlocks: 0, lies: [], faults: [], extra: {} };
  return { name, serial: `SN-${name}`, kind, blocks, ...none };
}

export function regionOf({ name, kind }: Pick<DiskDraft, 'name' | 'kind'>): string {
  return kind === 'format' || kind === 'crypto' ? `${name}n1` : name;
}

/** Fills `folder`, which must not exist. */
export function makeBox(folder: string, { disks, spares, signs }: BoxDraft): void {
  mkdirSync(folder);
  for (const disk of disks) {
    writeFileSync(join(folder, `${disk.name}.json`), JSON.stringify(describe(disk)));
    writeFileSync(join(folder, `${regionOf(disk)}.img`), contentOf(disk));
  }
  for (const spare of spares) {
    const like = spare.inPlaceOf ?? diskDraft(spare.name, 'overwrite', 8);
    const disk = { ...diskDraft(like.name, like.kind, like.blocks), serial: spare.serial };
    writeFileSync(join(folder, `${spare.name}.spare`), JSON.stringify(describe(disk)));
    writeFileSync(join(folder, `${spare.name}.spareimg`), spareContent(spare));
  }
  if (signs.length > 0) writeFileSync(join(folder, 'signs'), JSON.stringify(signs));
}

export function removeBox(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

function describe({ name, serial, kind, blocks, lies, faults, extra, ...rest }: DiskDraft): object {
  const isNvme = kind === 'format' || kind === 'crypto';
  const changed = rest.hiddenBlocks > 0 || rest.missingBlocks > 0;
  const exposed = changed ? { exposedBytes: blocks * blockBytes } : {};
  const nvme = { formatSupported: true, cryptoEraseSupported: kind === 'crypto' };
  return {
    serial,
    transport: isNvme ? 'nvme' : 'sata',
    discardSupported: kind === 'discard',
    regions: [{ name: regionOf({ name, kind }), ...exposed }],
    ...(isNvme ? { nvme } : {}),
    lies,
    faults,
    ...extra,
  };
}

/** The pattern of one block: no byte of it is what an erasure leaves. */
function patternOf(serial: string, block: number): Buffer {
  const digest = createHash('sha256').update(`${serial} ${block}`).digest();
  return Buffer.alloc(
    blockBytes,
    digest.map((byte) => 1 + (byte % 254)),
  );
}

function contentOf({ name, serial, blocks, hiddenBlocks, missingBlocks }: DiskDraft): Buffer {
  const count = blocks + hiddenBlocks - missingBlocks;
  const numbers = Array.from({ length: count }, (_, block) => block);
  return Buffer.concat(numbers.map((block) => patternOf(`${name} ${serial}`, block)));
}

function spareContent({ name, serial, inPlaceOf }: SpareDraft): Buffer {
  return contentOf({ ...diskDraft(name, 'overwrite', inPlaceOf?.blocks ?? 8), serial });
}

/** Share of the disk's sectors that still hold their pattern; `exposed`: of those it shows. */
export function shareLeft(folder: string, disk: DiskDraft, exposed: boolean): number {
  const image = readFileSync(join(folder, `${regionOf(disk)}.img`));
  const wanted = contentOf(disk);
  const bytes = exposed ? Math.min(wanted.length, disk.blocks * blockBytes) : wanted.length;
  let left = 0;
  for (let at = 0; at < bytes; at += sectorBytes) {
    const pattern = wanted.subarray(at, at + sectorBytes);
    if (image.subarray(at, at + sectorBytes).equals(pattern)) left += sectorBytes;
  }
  return left / bytes;
}

/** Whether no byte of the disk was written, at every place of its file. */
export function isUntouched(folder: string, disk: DiskDraft): boolean {
  const image = regionOf(disk);
  const file = existsSync(join(folder, `${image}.img.pulled`))
    ? `${image}.img.pulled`
    : `${image}.img`;
  return readFileSync(join(folder, file)).equals(contentOf(disk));
}

/** Names of spares that were written, on the shelf or in the place of another. */
export function sparesWritten(folder: string, { spares }: BoxDraft): string[] {
  const places = (spare: SpareDraft): string[] => [
    `${spare.name}.spareimg`,
    `${spare.name}.img`,
    ...(spare.inPlaceOf === undefined ? [] : [`${regionOf(spare.inPlaceOf)}.img`]),
  ];
  return spares
    .filter((spare) => {
      const found = places(spare).find((file) => existsSync(join(folder, file)));
      return found === undefined || !readFileSync(join(folder, found)).equals(spareContent(spare));
    })
    .map(({ name }) => name);
}
