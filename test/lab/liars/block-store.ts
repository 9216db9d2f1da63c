/**
 * What a block server serves: a file, and nothing hidden about it. Lies are laid over it elsewhere
 * (lies.ts), so that the file stays the witness of what the medium really holds.
 *
 * 1. Offsets and lengths are bytes. A caller that leaves the device is refused by the protocol, not
 *    here.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, fdatasyncSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';

const ZEROS = Buffer.alloc(1024 * 1024);
/** From this length on, zeroing is left to the file system: a disk of terabytes is sparse. */
const PUNCH_BYTES_MIN = 16 * 1024 * 1024;

/** Something that alters the medium. */
export type Change =
  | { readonly kind: 'write'; readonly offset: number; readonly bytes: Buffer }
  /** Writes zeros, and may give the blocks back. */
  | { readonly kind: 'zero'; readonly offset: number; readonly length: number }
  /** Gives blocks back; this medium reads zeros there afterwards. */
  | { readonly kind: 'discard'; readonly offset: number; readonly length: number };

/** A medium, true or not. What it refuses it throws as {@link MediumError}. */
export interface BlockStore {
  readonly sizeBytes: number;
  read(offset: number, length: number): Buffer;
  change(change: Change): void;
  flush(): void;
  /** The machine around it lost its power. */
  powerOff(): void;
  close(): void;
}

/** Why the medium refuses an access. */
export type MediumFault = 'unreadable' | 'unwritable' | 'writeProtected';

/** The medium refuses an access. */
export class MediumError extends Error {
  readonly fault: MediumFault;

  constructor(fault: MediumFault) {
    super(`the medium refuses: ${fault}`);
    this.fault = fault;
  }
}

/** Bytes that a change alters. */
export function lengthOf(change: Change): number {
  return change.kind === 'write' ? change.bytes.length : change.length;
}

/** The file `path` as a medium that does as it is told. */
export function fileStore(path: string): BlockStore {
  const file = openSync(path, 'r+');
  const sizeBytes = fstatSync(file).size;
  return {
    sizeBytes,
    read: (offset, length) => {
      const bytes = Buffer.alloc(length);
      readSync(file, bytes, 0, length, offset);
      return bytes;
    },
    change: (change) => {
      if (change.kind === 'write') writeAll(file, change.bytes, change.offset);
      else if (change.length < PUNCH_BYTES_MIN) zeroAll(file, change.offset, change.length);
      else punch(path, change.offset, change.length);
    },
    flush: () => fdatasyncSync(file),
    powerOff: () => undefined,
    close: () => closeSync(file),
  };
}

function writeAll(file: number, bytes: Buffer, offset: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(file, bytes, done, bytes.length - done, offset + done);
  }
}

function zeroAll(file: number, offset: number, length: number): void {
  for (let done = 0; done < length; done += ZEROS.length) {
    writeAll(file, ZEROS.subarray(0, Math.min(ZEROS.length, length - done)), offset + done);
  }
}

function punch(path: string, offset: number, length: number): void {
  execFileSync('fallocate', ['--punch-hole', '-o', `${offset}`, '-l', `${length}`, path]);
}
