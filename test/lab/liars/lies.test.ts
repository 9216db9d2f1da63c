import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inspectDisk, isUntouched, writePattern } from '../disk-image.ts';
import { type BlockStore, fileStore, MediumError } from './block-store.ts';
import { type Lie, type Span, withLie } from './lies.ts';

const KIB = 1024;
const DISK_BYTES = 64 * KIB;
const NAME = 'DISK';
let folder = '';
let path = '';
let now = 0;
let stores: BlockStore[] = [];
let lies = 0;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-lies-'));
  path = join(folder, 'disk');
  writePattern(path, NAME, DISK_BYTES);
  now = 0;
  lies = 0;
});

afterEach(() => {
  for (const store of stores) store.close();
  stores = [];
  rmSync(folder, { recursive: true });
});

function disk(lie?: Lie): BlockStore {
  const truth = fileStore(path);
  stores.push(truth);
  return lie === undefined
    ? truth
    : withLie(
        truth,
        lie,
        () => now,
        () => (lies += 1),
      );
}

function wipe(store: BlockStore): void {
  store.change({ kind: 'zero', offset: 0, length: store.sizeBytes });
  store.flush();
}

function isZero(store: BlockStore): boolean {
  return store.read(0, store.sizeBytes).every((byte) => byte === 0);
}

/** Blocks of 4 KiB that still hold the pattern, as the file says. */
function left(): number {
  return inspectDisk(path, NAME).withPattern;
}

test('a disk without a lie is empty once it is wiped', () => {
  const store = disk();
  wipe(store);
  expect([isZero(store), left()]).toEqual([true, 0]);
});

test('a range that keeps its data ignores the part of a write that overlaps it', () => {
  const store = disk({ kind: 'keeps', span: { offset: 8 * KIB, length: 16 * KIB } });
  store.change({ kind: 'write', offset: 4 * KIB, bytes: Buffer.alloc(24 * KIB, 0x11) });
  const file = readFileSync(path);
  expect(file.subarray(4 * KIB, 8 * KIB).every((byte) => byte === 0x11)).toBe(true);
  expect(file.subarray(24 * KIB, 28 * KIB).every((byte) => byte === 0x11)).toBe(true);
  wipe(store);
  expect([isZero(store), left()]).toEqual([false, 4]);
});

test('a disk that ignores all writes keeps its contents', () => {
  const store = disk({ kind: 'keepsAll' });
  wipe(store);
  expect(isUntouched(path, NAME)).toBe(true);
});

test('a disk that ignores discards takes writes and ignores zeroings', () => {
  const store = disk({ kind: 'keepsOnDiscard' });
  wipe(store);
  expect(isUntouched(path, NAME)).toBe(true);
  store.change({ kind: 'write', offset: 0, bytes: Buffer.alloc(4 * KIB) });
  expect(left()).toBe(15);
});

test('a range with misreads is empty on the medium, and returns old data to the reader', () => {
  const store = disk({ kind: 'misreads', span: { offset: 4 * KIB, length: 4 * KIB } });
  wipe(store);
  expect([isZero(store), left()]).toEqual([false, 0]);
  expect(store.read(8 * KIB, 4 * KIB).every((byte) => byte === 0)).toBe(true);
});

test('a disk that is truthful once shows a write to its first reader only', () => {
  const store = disk({ kind: 'truthfulOnce' });
  wipe(store);
  expect(isZero(store)).toBe(true);
  expect(isZero(store)).toBe(false);
  expect(isUntouched(path, NAME)).toBe(true);
});

test('a volatile disk forgets at power-off what it has flushed', () => {
  const store = disk({ kind: 'volatile' });
  wipe(store);
  store.change({ kind: 'write', offset: 1000, bytes: Buffer.from('new') });
  expect(store.read(1000, 3).toString()).toBe('new');
  expect(store.read(0, 1000).every((byte) => byte === 0)).toBe(true);
  store.powerOff();
  expect(store.read(0, DISK_BYTES).equals(readFileSync(path))).toBe(true);
  expect(isUntouched(path, NAME)).toBe(true);
});

test('a disk that reads zeros for a while has its data back after it', () => {
  const store = disk({ kind: 'zeroesForAWhile', milliseconds: 90_000 });
  store.change({ kind: 'discard', offset: 0, length: DISK_BYTES });
  now = 89_999;
  expect(isZero(store)).toBe(true);
  now = 90_000;
  expect(isZero(store)).toBe(false);
  expect(isUntouched(path, NAME)).toBe(true);
});

test('a disk that hides a part admits only the rest', () => {
  const store = disk({ kind: 'hides', admittedBytes: 48 * KIB });
  expect(store.sizeBytes).toBe(48 * KIB);
  wipe(store);
  expect(left()).toBe(4);
});

test('a disk that protects itself half-way takes what comes before and refuses the rest', () => {
  const store = disk({ kind: 'protectsItselfAfter', bytes: 24 * KIB });
  expect(() => wipe(store)).toThrow(MediumError);
  expect(left()).toBe(10);
  expect(() => store.change({ kind: 'zero', offset: 0, length: 512 })).toThrow('writeProtected');
});

test('a broken range refuses the commands that it is set to, and no others', () => {
  const span = { offset: 4 * KIB, length: 4 * KIB };
  const reader = disk({ kind: 'breaks', span, on: 'read' });
  wipe(reader);
  expect(() => reader.read(0, 8 * KIB)).toThrow('unreadable');
  expect(reader.read(8 * KIB, KIB).length).toBe(KIB);
  const writer = disk({ kind: 'breaks', span, on: 'write' });
  expect(() => wipe(writer)).toThrow('unwritable');
  expect(writer.read(0, 8 * KIB).length).toBe(8 * KIB);
});

const first: Span = { offset: 0, length: 4 * KIB };
const told: readonly (readonly [Lie, (store: BlockStore) => void])[] = [
  [{ kind: 'keeps', span: first }, wipe],
  [{ kind: 'keepsAll' }, wipe],
  [{ kind: 'keepsOnDiscard' }, wipe],
  [{ kind: 'misreads', span: first }, isZero],
  [{ kind: 'truthfulOnce' }, (store) => [wipe, isZero, isZero].map((act) => act(store))],
  [{ kind: 'volatile' }, (store) => [wipe(store), store.powerOff()]],
  [{ kind: 'zeroesForAWhile', milliseconds: 1 }, (store) => [wipe(store), isZero(store)]],
  [{ kind: 'hides', admittedBytes: 48 * KIB }, wipe],
  [{ kind: 'protectsItselfAfter', bytes: 0 }, (store) => expect(() => wipe(store)).toThrow()],
  [{ kind: 'breaks', span: first, on: 'read' }, (store) => expect(() => isZero(store)).toThrow()],
];

test.each(told)('%j counts as a lie once a request meets it, and not before', (lie, meet) => {
  const store = disk(lie);
  store.read(DISK_BYTES / 2, 512);
  expect(lies).toBe(0);
  meet(store);
  expect(lies).toBeGreaterThan(0);
});
