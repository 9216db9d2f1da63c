/**
 * Where a device is marked before it is erased, and where it is read afterwards (DESIGN §5,
 * Verdict). Pure and deterministic: who knows the seed can repeat every choice made here.
 *
 * Invariants:
 * C1 Challenge blocks never overlap each other, so each can be told apart after the erasure.
 * C2 Every challenge block is read back. Spans of fewer blocks than asked for are read whole.
 * C3 Offsets are multiples of 512 and of the block size, but for the last block of a span whose
 *    length is not a multiple of 4 KiB: that one ends where the span ends.
 */
import { createHash } from 'node:crypto';
import type { DeviceFacts } from './facts.ts';

/** Size of a challenge block and of a read, in bytes. */
export const blockBytes = 4096;
/** Seeded challenge blocks besides the first and the last one. */
export const challengeSeededPlaces = 62;
/** Seeded places that are only read. */
export const readBackSeededPlaces = 1024;
/** A seed has 16 to 64 bytes. */
export const seedBytesMin = 16;
export const seedBytesMax = 64;

/** A range of bytes inside a region. */
export interface Span {
  readonly offset: number;
  readonly length: number;
}

export interface ChallengePlan {
  /** Offsets of the blocks that are written, ascending. */
  readonly challenges: readonly number[];
  /** Offsets of the blocks that are read afterwards, ascending; contains `challenges`. */
  readonly readBacks: readonly number[];
}

/**
 * The seed of one region of one device, from the operation's seed: two devices of one operation
 * never carry the same challenge, so that two names of one disk show.
 */
export function regionSeed(
  operationSeed: Uint8Array,
  identity: string,
  region: string,
): Uint8Array {
  if (operationSeed.length < seedBytesMin || operationSeed.length > seedBytesMax) {
    throw new RangeError(
      `a seed has ${seedBytesMin} to ${seedBytesMax} bytes, not ${operationSeed.length}`,
    );
  }
  return createHash('sha256')
    .update('rackwright challenge seed 1\0')
    .update(operationSeed)
    .update(`\0${identity}\0${region}`)
    .digest();
}

/**
 * The name of a region inside its device that survives a reboot: its position, since kernel names
 * may change.
 */
export function regionLabel(device: DeviceFacts, regionName: string): string {
  return String(device.regions.findIndex((region) => region.name === regionName));
}

/**
 * Plans challenge and read-back for `spans`: ascending, not overlapping, each at least one block
 * long and all together at least two.
 */
export function planChallenge(seed: Uint8Array, spans: readonly Span[]): ChallengePlan {
  const head = spans[0];
  const tail = spans.at(-1);
  if (head === undefined || tail === undefined) throw new RangeError('no span to challenge');
  const ends = [head.offset, lastBlockOf(tail)];
  // At most three aligned blocks touch the first and the last place.
  const candidates = pickBlocks(seed, 'challenge', spans, challengeSeededPlaces + 3);
  const apart = candidates.filter((offset) => ends.every((end) => !overlaps(offset, end)));
  const challenges = ascending([...ends, ...apart.slice(0, challengeSeededPlaces)]);
  const written = new Set(challenges);
  const wanted = readBackSeededPlaces + challenges.length;
  const read = pickBlocks(seed, 'readback', spans, wanted).filter((offset) => !written.has(offset));
  const tails = spans.filter((span) => span.length % blockBytes !== 0).map(lastBlockOf);
  const extra = read.slice(0, readBackSeededPlaces);
  return { challenges, readBacks: ascending([...challenges, ...extra, ...tails]) };
}

/** The 4,096 bytes of the challenge at `offset`: no two offsets or seeds share a sector. */
export function challengeContent(seed: Uint8Array, offset: number): Uint8Array {
  const content = new Uint8Array(blockBytes);
  for (let part = 0; part * 32 < blockBytes; part++) {
    content.set(counterHash(seed, `content ${offset}`, part), part * 32);
  }
  return content;
}

/** Offset of the last block of a span: it ends where the span ends. */
function lastBlockOf(span: Span): number {
  return span.offset + span.length - blockBytes;
}

function overlaps(left: number, right: number): boolean {
  return Math.abs(left - right) < blockBytes;
}

function ascending(offsets: readonly number[]): number[] {
  return [...new Set(offsets)].sort((left, right) => left - right);
}

/**
 * Up to `count` different aligned blocks, in drawn order: the first steps of a Fisher–Yates
 * shuffle that keeps only the swapped positions. Exactly `count` draws, whatever is drawn.
 */
function pickBlocks(
  seed: Uint8Array,
  purpose: string,
  spans: readonly Span[],
  count: number,
): number[] {
  const total = spans.reduce((sum, span) => sum + Math.floor(span.length / blockBytes), 0);
  const moved = new Map<number, number>();
  const picked: number[] = [];
  for (let step = 0; step < Math.min(count, total); step++) {
    const at = step + drawBelow(seed, purpose, step, total - step);
    picked.push(offsetOf(spans, moved.get(at) ?? at));
    moved.set(at, moved.get(step) ?? step);
  }
  return picked;
}

/** Uniform in [0, limit) up to a bias below limit / 2^64, which no disk comes near. */
function drawBelow(seed: Uint8Array, purpose: string, step: number, limit: number): number {
  const hash = counterHash(seed, purpose, step);
  const word = new DataView(hash.buffer, hash.byteOffset).getBigUint64(0);
  return Number(word % BigInt(limit));
}

function offsetOf(spans: readonly Span[], block: number): number {
  let left = block;
  for (const span of spans) {
    const blocks = Math.floor(span.length / blockBytes);
    if (left < blocks) return span.offset + left * blockBytes;
    left -= blocks;
  }
  throw new RangeError(`block ${block} lies outside the spans`);
}

function counterHash(seed: Uint8Array, purpose: string, counter: number): Uint8Array {
  return createHash('sha256')
    .update('rackwright challenge 1\0')
    .update(seed)
    .update(`\0${purpose}\0${counter}`)
    .digest();
}
