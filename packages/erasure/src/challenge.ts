/**
 * Where a device is marked before it is erased, and where it is read afterwards (DESIGN §5,
 * Verdict). Pure and deterministic: the seed suffices to repeat every choice made here.
 *
 * Invariants:
 * C1 Challenge blocks never overlap each other, so each can be identified after the erasure.
 * C2 Every challenge block is read back. Spans of fewer blocks than asked for are read whole, and
 *    of each span the part after its last whole block.
 * C3 Offsets are multiples of 512 and of the block size, but for the last block of a span whose
 *    length is not a multiple of 4 KiB: that one ends where the span ends.
 * C4 Sampled places are stratified: one block is drawn uniformly from each of n equal parts of the
 *    blocks of all spans. Equal means exactly equal, also where n does not divide the blocks.
 */
import { createHash, hash } from 'node:crypto';
import type { DeviceFacts } from './facts.ts';

/** Size of a challenge block and of a read, in bytes. */
export const blockBytes = 4096;
/** Seeded challenge blocks besides the first and the last one. */
export const challengeSeededBlocks = 62;
/** The first place and the last one. */
const endBlocks = 2;
/** At most three aligned blocks touch the first and the last place. */
const candidatesMax = challengeSeededBlocks + 3;
/** Blocks that are written after an erasure that leaves any content. */
export const markBlocks = 16;
/** A seed has 16 to 64 bytes. */
export const seedBytesMin = 16;
export const seedBytesMax = 64;

/** A range of bytes inside a region. */
export interface ByteSpan {
  readonly offset: number;
  readonly length: number;
}

/** The reading of a device, or of one region of it. */
export type Verification =
  | { readonly level: 'full' }
  /** So many blocks of 4 KiB are drawn over all of it, beside the challenge. */
  | { readonly level: 'sampled'; readonly places: number };

/** The blocks that are read after the erasure. */
export type ReadPlan =
  /** Every byte of these spans, once. */
  | { readonly level: 'full'; readonly spans: readonly ByteSpan[] }
  /** Blocks at these offsets, ascending; contains the challenges. */
  | { readonly level: 'sampled'; readonly offsets: readonly number[] };

export interface ChallengePlan {
  /** Offsets of the blocks that are written, ascending. */
  readonly challenges: readonly number[];
  readonly reading: ReadPlan;
  /** Bytes of the spans: the subject of a verdict by this plan. */
  readonly bytesExamined: number;
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
 * long and all together at least two. Work and memory grow with the places, not with the spans'
 * lengths.
 */
export function planChallenge(
  seed: Uint8Array,
  spans: readonly ByteSpan[],
  verification: Verification,
): ChallengePlan {
  const head = spans[0];
  const tail = spans.at(-1);
  if (head === undefined || tail === undefined) throw new RangeError('no span to challenge');
  const ends = [head.offset, lastBlockOf(tail)];
  const candidates = pickBlocks(seed, 'challenge', spans, candidatesMax);
  const apart = candidates.filter((offset) => ends.every((end) => !overlaps(offset, end)));
  const challenges = ascending([...ends, ...apart.slice(0, challengeSeededBlocks)]);
  const bytesExamined = spans.reduce((sum, span) => sum + span.length, 0);
  if (verification.level === 'full') {
    return { challenges, reading: { level: 'full', spans }, bytesExamined };
  }
  const drawn = drawStratified(seed, spans, verification.places);
  const tails = spans.filter((span) => span.length % blockBytes !== 0).map(lastBlockOf);
  const offsets = ascending([...challenges, ...drawn, ...tails]);
  return { challenges, reading: { level: 'sampled', offsets }, bytesExamined };
}

/**
 * The number of challenges of a plan. Any seed gives as many, so where there is room for all of
 * them nothing is drawn.
 */
export function challengeCount(seed: Uint8Array, spans: readonly ByteSpan[]): number {
  const total = spans.reduce((sum, span) => sum + Math.floor(span.length / blockBytes), 0);
  if (total >= candidatesMax) return endBlocks + challengeSeededBlocks;
  return planChallenge(seed, spans, { level: 'full' }).challenges.length;
}

/**
 * The 4,096 bytes of the challenge at `offset`: no two offsets or seeds share a sector. One call of
 * SHAKE256 (FIPS 202), which gives any number of bytes.
 */
export function challengeContent(seed: Uint8Array, offset: number): Uint8Array {
  return createHash('shake256', { outputLength: blockBytes })
    .update(labelled(seed, `content ${offset}`))
    .digest();
}

/**
 * Where marks are written after an erasure that leaves any content: blocks of no challenge, in
 * drawn order. Empty where every block is one. A loss of power that undoes writes removes the
 * challenge along with them. A mark that stays shows that the device keeps confirmed writes.
 */
export function planMarks(
  seed: Uint8Array,
  spans: readonly ByteSpan[],
  { challenges }: Pick<ChallengePlan, 'challenges'>,
): number[] {
  const candidates = pickBlocks(seed, 'mark', spans, markBlocks + 3 * challenges.length);
  const free = candidates.filter((offset) => challenges.every((each) => !overlaps(offset, each)));
  return free.slice(0, markBlocks);
}

/** The 4,096 bytes of the mark at `offset`. */
export function markContent(seed: Uint8Array, offset: number): Uint8Array {
  return challengeContent(createHash('sha256').update('mark\0').update(seed).digest(), offset);
}

/** Offset of the last block of a span: it ends where the span ends. */
function lastBlockOf(span: ByteSpan): number {
  return span.offset + span.length - blockBytes;
}

function overlaps(left: number, right: number): boolean {
  return Math.abs(left - right) < blockBytes;
}

function ascending(offsets: readonly number[]): number[] {
  return [...new Set(offsets)].sort((left, right) => left - right);
}

/**
 * Up to `count` different aligned blocks, in drawn order: the first steps of a Fisher–Yates shuffle
 * that keeps only the swapped positions. Always exactly `count` draws.
 */
function pickBlocks(
  seed: Uint8Array,
  purpose: string,
  spans: readonly ByteSpan[],
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

/**
 * Uniform in [0, limit) up to a bias below limit / 2^64, which is negligible for every disk size.
 */
function drawBelow(seed: Uint8Array, purpose: string, step: number, limit: number): number {
  return wordBelow(counterHash(seed, purpose, step), 0, limit);
}

function wordBelow(hash: Uint8Array, index: number, limit: number): number {
  const word = new DataView(hash.buffer, hash.byteOffset).getBigUint64(8 * index);
  return Number(word % BigInt(limit));
}

/**
 * One block from each of `blocks` equal strata (C4), ascending. A stratum is `total` units of a
 * block's n-th part long, so it needs no rounding; the unit is drawn, and its block is read. Two
 * neighbours may draw the block that both have a part of.
 */
function drawStratified(seed: Uint8Array, spans: readonly ByteSpan[], blocks: number): number[] {
  const total = spans.reduce((sum, span) => sum + Math.floor(span.length / blockBytes), 0);
  const strata = Math.min(blocks, total);
  const whole = Math.floor(total / strata);
  const part = total % strata;
  const locate = ascendingOffsets(spans);
  const drawn: number[] = [];
  let words: Uint8Array = new Uint8Array();
  for (let stratum = 0; stratum < strata; stratum++) {
    // A hash has four words of 64 bits, and each is a draw.
    if (stratum % 4 === 0) words = counterHash(seed, 'strata', stratum / 4);
    const unit = wordBelow(words, stratum % 4, total);
    // floor((stratum * total + unit) / strata), without a product beyond 2^53.
    const block = stratum * whole + Math.floor((stratum * part + unit) / strata);
    drawn.push(locate(block));
  }
  return drawn;
}

/** Turns ascending block numbers into offsets, walking the spans once. */
function ascendingOffsets(spans: readonly ByteSpan[]): (block: number) => number {
  let at = 0;
  let before = 0;
  return (block) => {
    for (let span = spans[at]; span !== undefined; span = spans[at]) {
      const blocks = Math.floor(span.length / blockBytes);
      if (block - before < blocks) return span.offset + (block - before) * blockBytes;
      before += blocks;
      at += 1;
    }
    throw new RangeError(`block ${block} lies outside the spans`);
  };
}

function offsetOf(spans: readonly ByteSpan[], block: number): number {
  let left = block;
  for (const span of spans) {
    const blocks = Math.floor(span.length / blockBytes);
    if (left < blocks) return span.offset + left * blockBytes;
    left -= blocks;
  }
  throw new RangeError(`block ${block} lies outside the spans`);
}

const label = Buffer.from('rackwright challenge 1\0');

/** The bytes to hash for one purpose of a seed. */
function labelled(seed: Uint8Array, purpose: string): Uint8Array {
  return Buffer.concat([label, seed, Buffer.from(`\0${purpose}`)]);
}

/** At once and not by a Hash object: thousands of places are drawn by these. */
function counterHash(seed: Uint8Array, purpose: string, counter: number): Uint8Array {
  return hash('sha256', labelled(seed, `${purpose}\0${counter}`), 'buffer');
}
