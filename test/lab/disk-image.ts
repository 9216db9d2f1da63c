/**
 * Disk files of the lab, seen from outside: filled with a pattern before, read after.
 *
 * 1. Every block of the pattern names its disk and its place, so that a block that moved, or one of
 *    another disk, is not taken for the right one.
 * 2. Nothing here asks the machine or any program of ours: the file is the witness.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';

/** The pattern's unit, in bytes. */
export const PATTERN_BLOCK_BYTES = 4096;
const LINE_BYTES = 64;

/** What is on a disk file, in blocks of 4 KiB. */
export interface DiskVerdict {
  readonly blocks: number;
  /** Blocks that still hold a line of this disk's pattern anywhere. */
  readonly withPattern: number;
  readonly allZero: number;
  readonly other: number;
}

/**
 * Makes the file `path` and fills `bytes` of it (a multiple of 4096) with `disk`'s pattern, from
 * byte `start` on (a multiple of 4096 too).
 */
export function writePattern(path: string, disk: string, bytes: number, start = 0): void {
  if (bytes % PATTERN_BLOCK_BYTES !== 0) {
    throw new Error(`a disk of ${bytes} bytes is no multiple of ${PATTERN_BLOCK_BYTES}`);
  }
  const file = openSync(path, 'w');
  try {
    for (let at = start; at < start + bytes; at += PATTERN_BLOCK_BYTES) {
      writeSync(file, patternBlock(disk, at / PATTERN_BLOCK_BYTES), 0, PATTERN_BLOCK_BYTES, at);
    }
  } finally {
    closeSync(file);
  }
}

/** Reads the file, or what lies between two of its bytes, and counts what is in the blocks. */
export function inspectDisk(
  path: string,
  disk: string,
  part: { readonly from: number; readonly to: number } = { from: 0, to: Number.POSITIVE_INFINITY },
): DiskVerdict {
  const file = openSync(path, 'r');
  try {
    const bytes = Math.min(fstatSync(file).size, part.to) - part.from;
    const blocks = Math.ceil(bytes / PATTERN_BLOCK_BYTES);
    const marker = Buffer.from(patternMarker(disk));
    const block = Buffer.alloc(PATTERN_BLOCK_BYTES);
    let withPattern = 0;
    let allZero = 0;
    for (let index = 0; index < blocks; index += 1) {
      const at = part.from + index * PATTERN_BLOCK_BYTES;
      const length = readSync(file, block, 0, PATTERN_BLOCK_BYTES, at);
      const content = block.subarray(0, length);
      if (content.includes(marker)) withPattern += 1;
      else if (content.every((byte) => byte === 0)) allZero += 1;
    }
    return { blocks, withPattern, allZero, other: blocks - withPattern - allZero };
  } finally {
    closeSync(file);
  }
}

/** True when every byte is as `writePattern` left it. */
export function isUntouched(path: string, disk: string): boolean {
  const file = openSync(path, 'r');
  try {
    const blocks = fstatSync(file).size / PATTERN_BLOCK_BYTES;
    const block = Buffer.alloc(PATTERN_BLOCK_BYTES);
    for (let index = 0; index < blocks; index += 1) {
      readSync(file, block, 0, PATTERN_BLOCK_BYTES, index * PATTERN_BLOCK_BYTES);
      if (!block.equals(patternBlock(disk, index))) return false;
    }
    return true;
  } finally {
    closeSync(file);
  }
}

function patternMarker(disk: string): string {
  return `SECRET OF ${disk} BLOCK `;
}

function patternBlock(disk: string, index: number): Buffer {
  const line = `${patternMarker(disk)}${index.toString().padStart(10, '0')} `.padEnd(
    LINE_BYTES,
    '.',
  );
  return Buffer.alloc(PATTERN_BLOCK_BYTES, line);
}
