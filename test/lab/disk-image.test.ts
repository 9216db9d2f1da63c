import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inspectDisk, isUntouched, writePattern } from './disk-image.ts';

const MIB = 1024 * 1024;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-disk-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function patternDisk(name: string): string {
  const path = join(folder, name);
  writePattern(path, name, MIB);
  return path;
}

function overwrite(path: string, at: number, bytes: Uint8Array): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

test('a fresh disk is full of its own pattern and untouched', () => {
  const path = patternDisk('A');
  expect(inspectDisk(path, 'A')).toEqual({ blocks: 256, withPattern: 256, allZero: 0, other: 0 });
  expect(isUntouched(path, 'A')).toBe(true);
});

test('the pattern of another disk is not taken for this one', () => {
  const path = patternDisk('A');
  expect(inspectDisk(path, 'B').withPattern).toBe(0);
  expect(isUntouched(path, 'B')).toBe(false);
});

test('one surviving line in a zeroed block is noticed', () => {
  const path = patternDisk('A');
  overwrite(path, 0, new Uint8Array(4096 - 64));
  expect(inspectDisk(path, 'A').withPattern).toBe(256);
  overwrite(path, 4096 - 64, new Uint8Array(64));
  expect(inspectDisk(path, 'A')).toEqual({ blocks: 256, withPattern: 255, allZero: 1, other: 0 });
});

test('one changed byte is a touch', () => {
  const path = patternDisk('A');
  overwrite(path, MIB - 1, Uint8Array.of(0));
  expect(isUntouched(path, 'A')).toBe(false);
});
