/**
 * A disk put together again from what its own log says was done to it, as it was at the end of a
 * power-on long ago.
 *
 * 1. The disk was blank at first; what was never written is zeros, as what was discarded.
 */
import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { type BlockLogEntry, readBlockLog } from './blocklog.ts';

const SECTOR_BYTES = 512;
const COPY_BYTES = 1024 * 1024;

interface Segment {
  readonly log: number;
  readonly offset: number;
  readonly dataAt: number;
}

/** Writes the disk of `bytes` that these logs, in their order, have made into the file `to`. */
export function rebuildDisk(logs: readonly string[], bytes: number, to: string): void {
  const last = new Int32Array(bytes / SECTOR_BYTES); // 0: zeros, n: segments[n - 1]
  const segments: Segment[] = [];
  for (const [log, path] of logs.entries()) {
    for (const entry of readBlockLog(path, bytes)) {
      if (entry.kind === 'flush') continue;
      const from = entry.offset / SECTOR_BYTES;
      const isWrite = entry.kind === 'write';
      if (isWrite) segments.push({ log, offset: entry.offset, dataAt: entry.dataAt });
      last.fill(isWrite ? segments.length : 0, from, from + entry.length / SECTOR_BYTES);
    }
  }
  copyRuns(logs, last, segments, to, bytes);
}

function copyRuns(
  logs: readonly string[],
  last: Int32Array,
  segments: readonly Segment[],
  to: string,
  bytes: number,
): void {
  const sources = logs.map((path) => openSync(path, 'r'));
  const target = openSync(to, 'w');
  try {
    ftruncateSync(target, bytes);
    for (let from = 0; from < last.length; ) {
      const which = last[from] ?? 0;
      let end = from + 1;
      while (end < last.length && last[end] === which) end += 1;
      const segment = segments[which - 1];
      if (segment !== undefined) {
        const at = from * SECTOR_BYTES;
        const source = sources[segment.log] ?? -1;
        const dataAt = segment.dataAt + at - segment.offset;
        copy({ file: source, at: dataAt }, { file: target, at }, (end - from) * SECTOR_BYTES);
      }
      from = end;
    }
  } finally {
    for (const file of [...sources, target]) closeSync(file);
  }
}

interface Place {
  readonly file: number;
  readonly at: number;
}

function copy(from: Place, to: Place, bytes: number): void {
  const piece = Buffer.alloc(Math.min(bytes, COPY_BYTES));
  for (let done = 0; done < bytes; done += piece.length) {
    const length = Math.min(piece.length, bytes - done);
    const read = readSync(from.file, piece, 0, length, from.at + done);
    if (read !== length) throw new Error(`a block log ends at byte ${from.at + done + read}`);
    writeSync(to.file, piece, 0, length, to.at + done);
  }
}

/** Where two disks differ within the first `bytes`, outside `except`; undefined: nowhere. */
export function firstDifference(
  a: string,
  b: string,
  bytes: number,
  except: readonly { readonly from: number; readonly to: number }[],
): number | undefined {
  const files = [openSync(a, 'r'), openSync(b, 'r')] as const;
  const pieces = [Buffer.alloc(COPY_BYTES), Buffer.alloc(COPY_BYTES)] as const;
  try {
    for (let at = 0; at < bytes; at += COPY_BYTES) {
      const length = Math.min(COPY_BYTES, bytes - at);
      for (const [n, piece] of pieces.entries()) {
        piece.fill(0);
        readSync(files[n] ?? -1, piece, 0, length, at);
        for (const { from, to } of except) piece.fill(0, clip(from - at), clip(to - at));
      }
      if (pieces[0].equals(pieces[1])) continue;
      return at + pieces[0].findIndex((byte, place) => byte !== pieces[1][place]);
    }
    return undefined;
  } finally {
    for (const file of files) closeSync(file);
  }
}

function clip(at: number): number {
  return Math.min(COPY_BYTES, Math.max(0, at));
}

/**
 * True when, in this log, the sector that firmware looks at first became other than zeros only when
 * nothing below `bytes` beyond the first mebibyte was written any more.
 */
export function firstSectorCameLast(log: string, bytes: number): boolean {
  const writes = readBlockLog(log, bytes).filter(
    (entry): entry is BlockLogEntry & { kind: 'write' } => entry.kind === 'write',
  );
  const file = openSync(log, 'r');
  try {
    const sector = Buffer.alloc(SECTOR_BYTES);
    const first = writes.findIndex(({ offset, dataAt }) => {
      if (offset !== 0) return false;
      readSync(file, sector, 0, sector.length, dataAt);
      return sector.some((byte) => byte !== 0);
    });
    return first > 0 && writes.slice(first).every(({ offset }) => offset < COPY_BYTES);
  } finally {
    closeSync(file);
  }
}
