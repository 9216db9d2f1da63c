/** Tables checked with Debian's own tools: we read their tables, and they accept ours. */
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import { makeSeed, seedPartitionBytes } from '../seed/seed.ts';
import { checkBootable } from './bootable.ts';
import { type FitRequest, type FittedTable, fitTable } from './fit.ts';

const mib = 1024 * 1024;
let folder = '';
let missing: string | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-table-'));
  for (const program of ['sfdisk', 'sgdisk', 'fsck.vfat']) {
    try {
      execFileSync('which', [program], { stdio: 'pipe' });
    } catch {
      missing = `no ${program}`;
    }
  }
});

const loops: string[] = [];

afterAll(() => {
  for (const loop of loops) execFileSync('losetup', ['--detach', loop]);
  rmSync(folder, { recursive: true });
});

function skipWithout(context: TestContext): void {
  if (missing !== undefined) context.skip(missing);
}

function run(file: string, args: readonly string[], input = ''): string {
  return execFileSync(file, args, { cwd: folder, encoding: 'utf8', input, stdio: 'pipe' });
}

/** An image with a table that sfdisk makes. */
function image(script: string, sizeBytes = 64 * mib): Uint8Array {
  const path = join(folder, 'disk');
  rmSync(path, { force: true });
  const file = openSync(path, 'w+');
  ftruncateSync(file, sizeBytes);
  run('sfdisk', ['--quiet', path], script);
  const head = new Uint8Array(mib);
  readSync(file, head, 0, mib, 0);
  closeSync(file);
  return head;
}

/** Puts the result onto a larger disk. */
function onto(diskBytes: number, fitted: FittedTable, seed?: Uint8Array): string {
  const path = join(folder, 'disk');
  const file = openSync(path, 'r+');
  ftruncateSync(file, diskBytes);
  for (const { offset, bytes } of fitted.writes) writeSync(file, bytes, 0, bytes.length, offset);
  if (seed !== undefined) writeSync(file, seed, 0, seed.length, fitted.seed?.offsetBytes ?? 0);
  writeSync(file, fitted.head, 0, fitted.head.length, 0);
  closeSync(file);
  return path;
}

/** A loop device with blocks of 4096 bytes; undefined: none can be made. */
function loopOver(path: string): string | undefined {
  for (const loop of loops.splice(0)) run('losetup', ['--detach', loop]);
  try {
    const loop = run('losetup', ['--find', '--show', '--sector-size', '4096', path]).trim();
    loops.push(loop);
    return loop;
  } catch {
    return undefined;
  }
}

interface Listed {
  readonly start: number;
  readonly size: number;
  readonly type: string;
  readonly uuid?: string;
  readonly name?: string;
}

function listed(path: string): Listed[] {
  return JSON.parse(run('sfdisk', ['--json', path])).partitiontable.partitions;
}

// As in Debian's cloud images: the root partition is the first, and is at the end.
const debian = `label: gpt
label-id: 11111111-2222-3333-4444-555555555555
1 : start=262144 type=4f68bce3-e8cd-4db1-96e7-fbcaf984b709 name=root
14 : start=2048 size=6144 type=21686148-6449-6E6F-744E-656564454649
15 : start=8192 size=253952 type=U name=esp attrs=RequiredPartition
`;
const request: Pick<FitRequest, 'blockBytes' | 'grow'> = {
  ...{ blockBytes: 512, grow: true },
};
const seed = { sizeBytes: seedPartitionBytes, name: 'cidata' };

test('a GUID table fitted to a larger disk is sound to sgdisk and sfdisk', (context) => {
  skipWithout(context);
  const head = image(debian, 256 * mib);
  const diskBytes = 1000 * mib + 512 * 5;
  const fitted = fitTable({ ...request, head, diskBytes, seed });
  const content = makeSeed({ kind: 'noCloud', metaData: 'instance-id: a\n', userData: '' }, 512);
  const path = onto(diskBytes, fitted, content);
  expect(run('sgdisk', ['--verify', path])).toContain('No problems found');
  const partitions = listed(path);
  expect(partitions.map(({ start, size, name }) => [start, size, name])).toEqual([
    [262_144, (991 - 128) * 2048, 'root'],
    [991 * 2048, 8 * 2048, 'cidata'],
    [2048, 6144, undefined],
    [8192, 253_952, 'esp'],
  ]);
  expect(run('sfdisk', ['--part-attrs', path, '15'])).toContain('RequiredPartition');
  expect(fitted.grown).toEqual({ number: 1, addedBytes: (991 - 255) * mib });
  expect(fitted.seed).toMatchObject({ number: 2, offsetBytes: 991 * mib, sizeBytes: 8 * mib });
  expect(run('blkid', ['-p', '-O', String(991 * mib), path])).toContain('LABEL="CIDATA"');
  checkBootable(fitted, 'uefi');
  expect(() => checkBootable(fitted, 'bios')).toThrow('the image has no boot code');
  // Done again on the result, it changes nothing.
  const again = fitTable({ ...request, head: fitted.head, diskBytes });
  expect(again.partitions).toEqual(fitted.partitions);
  expect(again.notGrown).toBe('the last partition ends with the disk');
});

test('a table for blocks of 4096 bytes is fitted, and refused on other disks', (context) => {
  skipWithout(context);
  const path = join(folder, 'disk');
  rmSync(path, { force: true });
  const file = openSync(path, 'w+');
  ftruncateSync(file, 64 * mib);
  const within = (use: (loop: string) => void): void => {
    const loop = loopOver(path);
    if (loop === undefined) context.skip('no loop device with such blocks can be made here');
    else use(loop);
  };
  within((loop) => run('sfdisk', ['--quiet', loop], 'label: gpt\nstart=256 name=all\n'));
  const head = new Uint8Array(mib);
  readSync(file, head, 0, mib, 0);
  closeSync(file);
  const asked = { ...request, head, diskBytes: 200 * mib };
  const fitted = fitTable({ ...asked, blockBytes: 4096, seed });
  onto(200 * mib, fitted);
  within((loop) => {
    expect(run('sgdisk', ['--verify', loop])).toContain('No problems found');
    const [all, added] = listed(loop);
    expect(all).toMatchObject({ start: 256, size: (191 - 1) * 256 });
    expect(added).toMatchObject({ start: 191 * 256, size: 8 * 256, name: 'cidata' });
  });
  expect(() => fitTable(asked)).toThrow('for blocks of 4096 bytes; the disk has blocks of 512');
});

test('a last partition that must not grow stays, and the result says so', (context) => {
  skipWithout(context);
  const script = `label: gpt
size=20M type=0FC63DAF-8483-4772-8E79-3D69D8477DE4
size=20M type=0657FD6D-A4AB-43C4-84E5-0933C84B4F4F
`;
  const head = image(script);
  const fitted = fitTable({ ...request, head, diskBytes: 128 * mib });
  expect(fitted.notGrown).toBe('the last partition is swap');
  expect(fitted.grown).toBeUndefined();
  expect(run('sgdisk', ['--verify', onto(128 * mib, fitted)])).toContain('No problems found');
});

test('the table of an MBR is fitted', (context) => {
  skipWithout(context);
  const head = image('label: dos\nsize=10M type=ef\nsize=20M type=83 bootable\n');
  head.fill(0xfa, 0, 100);
  const fitted = fitTable({ ...request, head, diskBytes: 256 * mib, seed });
  const partitions = listed(onto(256 * mib, fitted));
  expect(partitions).toMatchObject([
    { start: 2048, size: 10 * 2048, type: 'ef' },
    { start: 11 * 2048, size: (248 - 11) * 2048, type: '83', bootable: true },
    { start: 248 * 2048, size: 8 * 2048, type: 'e' },
  ]);
  expect(fitted.seed).toMatchObject({ number: 3, offsetBytes: 248 * mib });
  checkBootable(fitted, 'bios');
  checkBootable(fitted, 'uefi');
  const full = image('label: dos\nsize=9M\nsize=9M\nsize=9M\nsize=9M\n');
  const asked = { ...request, head: full, diskBytes: 256 * mib };
  expect(() => fitTable({ ...asked, seed })).toThrow('the partition table is full');
});

test('untrustworthy tables and disks that are too small are refused', (context) => {
  skipWithout(context);
  const head = image(debian, 256 * mib);
  const asked = { ...request, head, diskBytes: 1000 * mib };
  for (const at of [512 + 60, 1024 + 40]) {
    const changed = new Uint8Array(head);
    changed[at] = 1 + (changed[at] ?? 0);
    expect(() => fitTable({ ...asked, head: changed })).toThrow(/the checksum of its/);
  }
  const lost = new Uint8Array(head).fill(0, 512, 1024);
  expect(() => fitTable({ ...asked, head: lost })).toThrow('but has none');
  expect(() => fitTable({ ...asked, diskBytes: 200 * mib })).toThrow('end beyond the disk');
  const tight = { ...asked, diskBytes: 260 * mib, seed };
  expect(() => fitTable(tight)).toThrow('no room of 8388608 bytes for first-boot data');
  const bare = fitTable({ ...asked, head: new Uint8Array(mib) });
  expect(bare).toMatchObject({ kind: 'none', notGrown: 'the image has no partition table' });
  expect(() => fitTable({ ...asked, head: new Uint8Array(mib), seed })).toThrow('no place for');
  expect(() => checkBootable(bare, 'uefi')).toThrow('no EFI system partition');
});
