import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@rackwright/platform';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Lie } from './file-disk-lies.ts';
import { Medium, noCounts, zeros } from './file-disk-medium.ts';
import { switchOffFileDisks } from './file-disk-undo.ts';

const block = 4_096;
const sizeBytes = 8 * block;
let folder = '';
let fd = 0;
let nowMs = 0;

beforeEach(() => {
  nowMs = 0;
  folder = mkdtempSync(join(tmpdir(), 'rackwright-medium-'));
  writeFileSync(image(), Buffer.alloc(sizeBytes, 'P'));
  fd = openSync(image(), 'r+');
});

afterEach(() => {
  closeSync(fd);
  rmSync(folder, { recursive: true });
});

const image = (): string => join(folder, 'vda.img');

function mediumWith(...lies: Lie[]): Medium {
  const clock = { nowMs: () => nowMs } as Clock;
  return new Medium({ fd, image: image(), lies, clock, counts: noCounts() });
}

/** The first letter of each block: P the pattern, 0 zeros, else another byte. */
function blocks(bytes: Uint8Array): string {
  const letters = { 0x50: 'P', 0x00: '0' } as Readonly<Record<number, string>>;
  const first = Array.from({ length: bytes.length / block }, (_, at) => bytes[at * block] ?? 0);
  return first.map((byte) => letters[byte] ?? 'x').join('');
}

const onMedium = (): string => blocks(readFileSync(image()));

function readAll(medium: Medium): string {
  const bytes = new Uint8Array(sizeBytes);
  medium.read(0, bytes);
  return blocks(bytes);
}

function wipe(medium: Medium, operation: 'write' | 'discard' = 'write'): void {
  medium.change(operation, 0, sizeBytes, zeros);
}

test('the disk does what it is told without a lie', () => {
  wipe(mediumWith());
  expect(onMedium()).toBe('00000000');
});

test.each<[string, Lie, string]>([
  ['a range', { kind: 'ignores', offset: 2 * block, length: block }, '00P00000'],
  ['all above an offset', { kind: 'ignores', offset: 5 * block, length: Infinity }, '00000PPP'],
  ['all after so many bytes', { kind: 'stopsAt', operation: 'write', bytes: block }, '0PPPPPPP'],
  ['zeros', { kind: 'leaves', operation: 'write', byte: 0xff }, 'xxxxxxxx'],
  ['changes, silently', { kind: 'writeProtects', afterChanges: 0, silently: true }, 'PPPPPPPP'],
  ['addresses', { kind: 'wraps', everyBytes: 4 * block }, '0000PPPP'],
])('the disk ignores %s', (_, lie, left) => {
  wipe(mediumWith(lie));
  expect(onMedium()).toBe(left);
});

test('the disk says that it is write-protected, after so many changes', () => {
  const medium = mediumWith({ kind: 'writeProtects', afterChanges: 1, silently: false });
  medium.change('write', 0, block, zeros);
  expect(() => wipe(medium)).toThrow('write protected');
  expect(onMedium()).toBe('0PPPPPPP');
});

test('the disk answers some reads of a block only with another byte', () => {
  const lie = { kind: 'answers', offset: block, length: block, byte: 0 } as const;
  const medium = mediumWith({ ...lie, fromRead: 1, reads: 1 });
  expect([readAll(medium), readAll(medium), readAll(medium)]).toEqual([
    'PPPPPPPP',
    'P0PPPPPP',
    'PPPPPPPP',
  ]);
});

test('the disk answers fewer bytes, and a flush that fails', () => {
  const medium = mediumWith(
    { kind: 'shortReads', offset: block, length: block, bytes: 512 },
    { kind: 'flushFails' },
  );
  expect(medium.read(0, new Uint8Array(block))).toBe(block);
  expect(medium.read(block, new Uint8Array(block))).toBe(512);
  expect(() => medium.flush()).toThrow('flush');
});

test.each([
  [true, 'PPPPPPPP'],
  [false, '00000PPP'],
])('the disk loses with the power what was flushed: %s', (flushed, left) => {
  const medium = mediumWith({ kind: 'losesAtPowerOff', flushed });
  medium.change('write', 0, 5 * block, zeros);
  medium.flush();
  medium.change('write', 5 * block, 3 * block, zeros);
  expect(readAll(medium)).toBe('00000000');
  switchOffFileDisks(folder, nowMs);
  expect(onMedium()).toBe(left);
});

test('the disk has what was discarded again after its time, in a later process too', () => {
  const lie = { kind: 'comesBack', operation: 'discard', afterMs: 90_000 } as const;
  wipe(mediumWith(lie), 'discard');
  nowMs = 89_999;
  expect(readAll(mediumWith(lie))).toBe('00000000');
  nowMs = 90_000;
  expect(readAll(mediumWith(lie))).toBe('PPPPPPPP');
});

test('data that comes back does so also while the power is off', () => {
  wipe(mediumWith({ kind: 'comesBack', operation: 'write', afterMs: 1 }));
  switchOffFileDisks(folder, Number.POSITIVE_INFINITY);
  expect(onMedium()).toBe('PPPPPPPP');
});
