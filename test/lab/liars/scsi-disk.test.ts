import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inspectDisk, writePattern } from '../disk-image.ts';
import { type BlockStore, fileStore } from './block-store.ts';
import { withLie } from './lies.ts';
import { type ScsiDisk, type ScsiDiskFacts, scsiDisk } from './scsi-disk.ts';

const DISK_BYTES = 1024 * 1024;
const NAME = 'DISK';
let folder = '';
let path = '';
let store: BlockStore | undefined;
let now = 0;
let lies = 0;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-scsi-'));
  path = join(folder, 'disk');
  writePattern(path, NAME, DISK_BYTES);
  now = 0;
  lies = 0;
});

afterEach(() => {
  store?.close();
  rmSync(folder, { recursive: true });
});

function disk(facts: ScsiDiskFacts, protectedAfter?: number): ScsiDisk {
  const truth = fileStore(path);
  store = truth;
  const medium =
    protectedAfter === undefined
      ? truth
      : withLie(truth, { kind: 'protectsItselfAfter', bytes: protectedAfter }, () => now);
  return scsiDisk(
    medium,
    facts,
    () => now,
    () => (lies += 1),
  );
}

function ask(target: ScsiDisk, hex: string, dataOut: Buffer = Buffer.alloc(0)): Buffer {
  const answer = target.execute(cdb(hex), dataOut);
  expect(answer.sense.toString('hex')).toBe('');
  return answer.bytes;
}

/** Sense key, code and qualifier of a command that is refused. */
function refusal(target: ScsiDisk, hex: string, dataOut: Buffer = Buffer.alloc(0)): number[] {
  const { sense } = target.execute(cdb(hex), dataOut);
  return [sense.readUInt8(2), sense.readUInt8(12), sense.readUInt8(13)];
}

function cdb(hex: string): Buffer {
  const bytes = Buffer.alloc(16);
  Buffer.from(hex.replaceAll(' ', ''), 'hex').copy(bytes);
  return bytes;
}

test('a disk says its serial number in pages 80h and 83h, and a new one once it changed', () => {
  const facts = { serial: 'FIRST' };
  const target = disk(facts);
  expect(ask(target, '12 01 80 00ff 00').toString('latin1')).toBe('\0\x80\0\x05FIRST');
  expect(ask(target, '12 01 83 00ff 00').toString('latin1')).toContain('RACKWRGTFIRST');
  facts.serial = 'OTHER';
  expect(ask(target, '12 01 80 00ff 00').toString('latin1')).toContain('OTHER');
});

test('READ CAPACITY(10) may admit less than READ CAPACITY(16)', () => {
  const target = disk({ serial: 'S', admittedBytes: DISK_BYTES / 2 });
  expect(ask(target, '25').readUInt32BE(0)).toBe(DISK_BYTES / 1024 - 1);
  expect(Number(ask(target, '9e10 0000000000000000 00000020').readBigUInt64BE(0))).toBe(
    DISK_BYTES / 512 - 1,
  );
});

test('a disk writes and reads by both lengths of command, and refuses what lies beyond', () => {
  const target = disk({ serial: 'S' });
  const block = Buffer.alloc(1024, 0x44);
  expect(target.dataOutBytes(cdb('2a 00 00000008 00 0002 00'))).toBe(1024);
  ask(target, '2a 00 00000008 00 0002 00', block);
  expect(ask(target, '88 00 0000000000000008 00000002 0000')).toEqual(block);
  expect(refusal(target, '28 00 00000800 00 0001 00')).toEqual([5, 0x21, 0]);
  expect(refusal(target, 'ff')).toEqual([5, 0x20, 0]);
});

test('a write protection half-way is data protect', () => {
  const target = disk({ serial: 'S' }, 1024);
  ask(target, '2a 00 00000000 00 0002 00', Buffer.alloc(1024));
  expect(refusal(target, '2a 00 00000002 00 0001 00', Buffer.alloc(512))).toEqual([7, 0x27, 0]);
});

test('a sanitize erases and is not ready meanwhile', () => {
  const target = disk({ serial: 'S', sanitize: 'erases', sanitizeMs: 1000 });
  expect(ask(target, 'a3 0c 01 48 0002 00000100').readUInt8(1)).toBe(3);
  ask(target, '48 82');
  expect(refusal(target, '00')).toEqual([2, 4, 0x1b]);
  now = 1000;
  ask(target, '00');
  expect(inspectDisk(path, NAME).allZero).toBe(DISK_BYTES / 4096);
});

test('a sanitize that only says so leaves everything, and counts as a lie', () => {
  const target = disk({ serial: 'S', sanitize: 'onlySaysSo' });
  expect(lies).toBe(0);
  ask(target, '48 82');
  expect(lies).toBe(1);
  expect(inspectDisk(path, NAME).withPattern).toBe(DISK_BYTES / 4096);
});

test('a disk without sanitize says so when it is asked what it has', () => {
  const target = disk({ serial: 'S' });
  expect(ask(target, 'a3 0c 01 48 0002 00000100').readUInt8(1)).toBe(1);
  expect(refusal(target, '48 82')).toEqual([5, 0x20, 0]);
});
