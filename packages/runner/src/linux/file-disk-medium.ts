/**
 * The content of one region of a file disk, and its simulated faults.
 *
 * Invariants:
 * M1 The image file holds what reads return now. Content that a power cut removes, or that time
 *    brings back, is kept beside it in `<image>.undo`, so that it survives the process that wrote.
 * M2 Of each block the first content is kept: that is the content of a disk that never wrote.
 */
import { readSync, writeSync } from 'node:fs';
import { basename } from 'node:path';
import type { Clock } from '@rackwright/platform';
import { DeviceError, transferBytesMax } from '../machine/block-devices.ts';
import { type Extent, type Lie, type MediumOperation, meeting } from './file-disk-lies.ts';
import { addKept, type KeptBlock, readKept, restore, writeKept } from './file-disk-undo.ts';

/**
 * The number of a disk's operations since its description was first read; shared by its regions.
 */
export interface DiskCounts {
  openings: number;
  listings: number;
  operations: number;
  changes: number;
  /** By image and block. */
  readonly reads: Map<string, number>;
}

export function noCounts(): DiskCounts {
  return { openings: 0, listings: 0, operations: 0, changes: 0, reads: new Map() };
}

/** Content for the bytes from `at` on, which is counted from the region's start. */
export type ContentAt = (at: number, length: number) => Uint8Array;

export const zeros: ContentAt = (_at, length) => new Uint8Array(length);

const blockBytes = 4_096;

export interface MediumParts {
  readonly fd: number;
  readonly image: string;
  readonly lies: readonly Lie[];
  readonly clock: Clock;
  readonly counts: DiskCounts;
}

export class Medium {
  readonly #parts: MediumParts;
  /** Blocks of which something is kept: for the power, and for a time. */
  readonly #kept: { readonly power: Set<number>; readonly time: Set<number> };

  constructor(parts: MediumParts) {
    this.#parts = parts;
    const kept = readKept(parts.image);
    const blocks = (timed: boolean) =>
      new Set(
        kept.flatMap(({ offset, until }) => ((until !== undefined) === timed ? [offset] : [])),
      );
    this.#kept = { power: blocks(false), time: blocks(true) };
  }

  /** Fills `target`; answers how many bytes were read. */
  read(offset: number, target: Uint8Array): number {
    this.#bringBack();
    const { fd, lies } = this.#parts;
    for (const part of this.#wrapped(offset, target.length)) {
      readSync(fd, target, part.from, part.length, part.offset);
    }
    let bytes = target.length;
    for (const lie of lies) {
      if (lie.kind === 'answers') this.#answer(lie, offset, target);
      if (lie.kind !== 'shortReads' || meeting(lie, offset, target.length) === undefined) continue;
      bytes = Math.min(bytes, lie.bytes);
    }
    this.#countReads(offset, target.length);
    return bytes;
  }

  change(
    operation: Exclude<MediumOperation, 'read'>,
    offset: number,
    length: number,
    content: ContentAt,
  ): void {
    this.#bringBack();
    const { lies, counts, fd } = this.#parts;
    counts.changes += 1;
    let reach = length;
    let shown = content;
    for (const lie of lies) {
      if (lie.kind === 'writeProtects' && counts.changes > lie.afterChanges) {
        if (lie.silently) return;
        throw new DeviceError(`I/O error: ${operation} at ${offset}: write protected`);
      }
      if (lie.kind === 'stopsAt' && lie.operation === operation) reach = Math.min(reach, lie.bytes);
      if (lie.kind === 'leaves' && lie.operation === operation) {
        shown = (_at, bytes) => new Uint8Array(bytes).fill(lie.byte);
      }
    }
    for (const piece of this.#obeyed(offset, reach)) {
      for (const part of this.#wrapped(piece.offset, piece.length)) {
        this.#keep(operation, part.offset, part.length);
        const bytes = shown(piece.offset + part.from, part.length);
        writeSync(fd, bytes, 0, part.length, part.offset);
      }
    }
  }

  flush(): void {
    const { lies, image } = this.#parts;
    if (lies.some(({ kind }) => kind === 'flushFails')) {
      throw new DeviceError('I/O error: the flush failed');
    }
    if (!lies.some((lie) => lie.kind === 'losesAtPowerOff' && !lie.flushed)) return;
    this.#kept.power.clear();
    writeKept(
      image,
      readKept(image).filter(({ until }) => until !== undefined),
    );
  }

  /** The part of a change that is made. */
  #obeyed(offset: number, length: number): Extent[] {
    let pieces: Extent[] = [{ offset, length }];
    for (const lie of this.#parts.lies) {
      if (lie.kind === 'ignores') pieces = pieces.flatMap((piece) => without(piece, lie));
    }
    return pieces;
  }

  /** The places of the bytes, one transfer each; `from` counts from the first of them. */
  #wrapped(offset: number, length: number): (Extent & { readonly from: number })[] {
    const wraps = this.#parts.lies.find((lie) => lie.kind === 'wraps');
    const everyBytes = wraps?.everyBytes ?? Number.MAX_SAFE_INTEGER;
    const parts: (Extent & { readonly from: number })[] = [];
    for (let from = 0; from < length; ) {
      const at = (offset + from) % everyBytes;
      const bytes = Math.min(length - from, everyBytes - at, transferBytesMax);
      parts.push({ offset: at, length: bytes, from });
      from += bytes;
    }
    return parts;
  }

  #answer(lie: Lie & { readonly kind: 'answers' }, offset: number, target: Uint8Array): void {
    for (const block of blocksOf({ offset, length: target.length })) {
      const read = this.#parts.counts.reads.get(this.#nameOf(block)) ?? 0;
      if (read < lie.fromRead || read >= lie.fromRead + lie.reads) continue;
      const inBlock = meeting({ offset: block, length: blockBytes }, offset, target.length);
      const met = inBlock && meeting(lie, inBlock.offset, inBlock.length);
      if (met === undefined) continue;
      target.fill(lie.byte, met.offset - offset, met.offset - offset + met.length);
    }
  }

  #countReads(offset: number, length: number): void {
    const { reads } = this.#parts.counts;
    for (const block of blocksOf({ offset, length })) {
      const name = this.#nameOf(block);
      reads.set(name, (reads.get(name) ?? 0) + 1);
    }
  }

  #nameOf(block: number): string {
    return `${basename(this.#parts.image)} ${block}`;
  }

  #keep(operation: MediumOperation, offset: number, length: number): void {
    const { lies, clock } = this.#parts;
    for (const lie of lies) {
      if (lie.kind === 'losesAtPowerOff') this.#keepBlocks(this.#kept.power, offset, length);
      if (lie.kind !== 'comesBack' || lie.operation !== operation) continue;
      this.#keepBlocks(this.#kept.time, offset, length, clock.nowMs() + lie.afterMs);
    }
  }

  /** M2. */
  #keepBlocks(known: Set<number>, offset: number, length: number, until?: number): void {
    const { fd, image } = this.#parts;
    for (const block of blocksOf({ offset, length })) {
      if (known.has(block)) continue;
      known.add(block);
      const bytes = Buffer.alloc(blockBytes);
      const count = readSync(fd, bytes, 0, blockBytes, block);
      const kept = { offset: block, bytes: bytes.subarray(0, count).toString('base64') };
      const line: KeptBlock = until === undefined ? kept : { ...kept, until };
      addKept(image, line);
    }
  }

  #bringBack(): void {
    const { clock, image } = this.#parts;
    if (this.#kept.time.size === 0) return;
    if (restore(image, ({ until }) => until !== undefined && until <= clock.nowMs()) === 0) return;
    this.#kept.time.clear();
    for (const { offset, until } of readKept(image)) {
      if (until !== undefined) this.#kept.time.add(offset);
    }
  }
}

function without(piece: Extent, hole: Extent): Extent[] {
  const met = meeting(hole, piece.offset, piece.length);
  if (met === undefined) return [piece];
  const end = piece.offset + piece.length;
  const before = { offset: piece.offset, length: met.offset - piece.offset };
  const after = { offset: met.offset + met.length, length: end - met.offset - met.length };
  return [before, after].filter(({ length }) => length > 0);
}

function blocksOf({ offset, length }: Extent): number[] {
  const first = Math.floor(offset / blockBytes) * blockBytes;
  const count = Math.ceil((offset + length - first) / blockBytes);
  return Array.from({ length: count }, (_, index) => first + index * blockBytes);
}
