/**
 * How a device is read back after its erasure, and what that finds (DESIGN §5, Verdict). Pure.
 *
 * Sampling is stratified: the device is cut into n equal parts (strata), and one block of 4 KiB is
 * drawn uniformly from each. `w` is the width of a stratum, both in blocks.
 *
 * A left share p, anywhere: with p_i the share of stratum i that is left, all draws miss it with
 * probability Π(1 - p_i). The mean of the p_i is p, so by the inequality of arithmetic and
 * geometric means this is at most (1 - p)^n: never worse than n independent draws. Hence
 * n = ln(1 - c) / ln(1 - p) finds it with confidence c: 46,050 places for 0.01 % and 99 %.
 *
 * One hole of h blocks, at any position: if it covers a whole stratum, it is found. Else it lies in
 * at most two, with a and h - a blocks, and is missed with probability
 * (1 - a/w) (1 - (h - a)/w), which is largest, (1 - h/2w)², when a = h/2. A hole of H bytes touches
 * at least H / 4096 blocks, rounded up. Hence n = 2 B (1 - √(1 - c)) / h for B blocks.
 */
import { blockBytes, type Verification } from './challenge.ts';
import { type ErasureMethod, leavesContent } from './method.ts';

export interface VerificationPolicy {
  /** Read every device whole. */
  readonly full: boolean;
  /** Smaller devices are read whole. */
  readonly fullBelowBytes: number;
  /** The smallest share that must be found, above 0 and at most 1. */
  readonly share: number;
  /** The smallest single hole that must be found; goes before the share. */
  readonly holeBytes?: number;
  /** The confidence, above 0 and at most 1. */
  readonly confidence: number;
  /** Sample overwritten devices as well; by default they are read whole. */
  readonly sampleOverwritten: boolean;
}

export const defaultVerificationPolicy: VerificationPolicy = {
  full: false,
  fullBelowBytes: 64 * 1024 ** 3,
  share: 0.0001,
  confidence: 0.99,
  sampleOverwritten: false,
};

/** More places are not drawn: reading the whole device in order is then the cheaper way. */
export const blocksMax = 2 ** 22;

export interface VerificationQuestion {
  readonly method: ErasureMethod;
  readonly sizeBytes: number;
  readonly policy: VerificationPolicy;
}

/** How a device of this size is read back. Throws `RangeError` for a policy out of its ranges. */
export function planVerification({
  method,
  sizeBytes,
  policy,
}: VerificationQuestion): Verification {
  mustBeShare('the share', policy.share);
  mustBeShare('the confidence', policy.confidence);
  const isWhole = policy.full || method === 'metadataOnly' || sizeBytes < policy.fullBelowBytes;
  const isOverwritten = method === 'overwrite' && !policy.sampleOverwritten;
  if (isWhole || isOverwritten) return { level: 'full' };
  const places =
    policy.holeBytes === undefined
      ? blocksForShare(policy.share, policy.confidence)
      : blocksForHole(policy.holeBytes, sizeBytes, policy.confidence);
  const isTooMany = places > blocksMax || places * blockBytes >= sizeBytes;
  return isTooMany ? { level: 'full' } : { level: 'sampled', places };
}

/**
 * How a device is read again in a later boot. A sampled device is read in the same places. A device
 * that was read whole is sampled by the policy, however it was erased: its whole reading is
 * certified, and another one would keep its host from use for hours. Throws as `planVerification`
 * does.
 */
export function planRereading(erased: Verification, question: VerificationQuestion): Verification {
  if (erased.level === 'sampled') return erased;
  const policy = { ...question.policy, sampleOverwritten: true };
  return planVerification({ ...question, policy });
}

/** Places that find a left share of a device of any size; `Infinity` when none suffice. */
export function blocksForShare(share: number, confidence: number): number {
  if (share >= 1) return 1;
  if (confidence >= 1) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.ceil(Math.log1p(-confidence) / Math.log1p(-share)));
}

/** Places that find one hole of so many bytes at any position of a device. */
export function blocksForHole(holeBytes: number, sizeBytes: number, confidence: number): number {
  if (!(holeBytes >= 1)) throw new RangeError(`a hole has at least one byte, not ${holeBytes}`);
  const blocks = Math.ceil(sizeBytes / blockBytes);
  const hole = Math.ceil(holeBytes / blockBytes);
  return Math.max(1, Math.ceil((2 * blocks * (1 - Math.sqrt(1 - confidence))) / hole));
}

/** The smallest share that so many places find with this confidence. */
export function shareFound(drawn: number, confidence: number): number {
  return -Math.expm1(Math.log1p(-confidence) / drawn);
}

/** The smallest hole, in bytes, that so many places find with this confidence at any position. */
export function holeFound(drawn: number, sizeBytes: number, confidence: number): number {
  const blocks = Math.ceil(sizeBytes / blockBytes);
  const width = blocks / Math.min(drawn, blocks);
  const hole = Math.ceil(2 * width * (1 - Math.sqrt(1 - confidence)));
  // H bytes touch at least H / 4096 blocks, so one byte more than the blocks before suffices.
  return (hole - 1) * blockBytes + 1;
}

/** The part of a device's verification that falls to one of its regions, by size. */
export function regionVerification(
  whole: Verification,
  regionBytes: number,
  deviceBytes: number,
): Verification {
  if (whole.level === 'full' || regionBytes >= deviceBytes) return whole;
  return { level: 'sampled', places: Math.ceil((whole.places * regionBytes) / deviceBytes) };
}

/** The speed of a device's answers. */
export interface ReadSpeed {
  readonly bytesPerSecond: number;
  /** Reads of 4 KiB at scattered places. */
  readonly readsPerSecond: number;
}

/** The cost of reading back, and what it can miss. */
export interface VerificationDescription {
  readonly reads: number;
  readonly bytes: number;
  readonly seconds: number;
  /** One sentence about what can be missed. */
  readonly canMiss: string;
}

export interface DescriptionQuestion {
  readonly verification: Verification;
  readonly method: ErasureMethod;
  readonly sizeBytes: number;
  readonly speed: ReadSpeed;
  readonly confidence: number;
}

/** Describes reading back, for plans. */
export function describeVerification(question: DescriptionQuestion): VerificationDescription {
  const { verification, sizeBytes, speed } = question;
  if (verification.level === 'full') {
    const reads = Math.ceil(sizeBytes / blockBytes);
    const seconds = sizeBytes / speed.bytesPerSecond;
    return { reads, bytes: sizeBytes, seconds, canMiss: canMiss(question) };
  }
  const reads = Math.min(verification.places, Math.ceil(sizeBytes / blockBytes));
  const bytes = reads * blockBytes;
  const seconds = reads / speed.readsPerSecond + bytes / speed.bytesPerSecond;
  return { reads, bytes, seconds, canMiss: canMiss(question) };
}

function canMiss({ verification, method, sizeBytes, confidence }: DescriptionQuestion): string {
  if (leavesContent(method)) {
    return 'the method leaves other content, so only the challenge blocks show that it worked';
  }
  if (verification.level === 'full') return 'nothing that can be addressed is missed';
  const share = percent(shareFound(verification.places, confidence));
  const hole = holeFound(verification.places, sizeBytes, confidence);
  const sure = `${percent(confidence)} confidence`;
  return `with ${sure}, at least ${share} that is left is found, or one hole of ${hole} bytes`;
}

/** A share as a percentage with four significant digits. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(4))} %`;
}

function mustBeShare(name: string, value: number): void {
  if (value > 0 && value <= 1) return;
  throw new RangeError(`${name} is above 0 and at most 1, not ${value}`);
}
