/**
 * The verdict over the blocks that were read from a device after its erasure. Exit codes are not
 * evidence; only bytes are (DESIGN §5, Verdict). Pure.
 *
 * Invariants:
 * V1 `erased` needs that every planned place was read exactly once: an empty or partial reading, a
 *    place read twice instead of another, a short block or a byte read twice is `unverified`.
 * V2 Proof that bytes are left outranks an I/O error elsewhere: `notErased` wins.
 * V3 After a method that leaves other content, any content is fine but the challenge; one equal
 *    sector of 512 bytes is enough for `notErased`.
 * V4 For every method: without a challenge that was proved to have been written, there is no
 *    verdict. An untouched disk is mostly zeros as well, so its places prove nothing.
 */
import { blockBytes, type ChallengePlan, challengeContent } from './challenge.ts';
import { startCoverage } from './coverage.ts';
import { type ErasureMethod, leavesContent } from './method.ts';

/** Largest piece that a full reading may hand over at once. */
export const chunkBytesMax = 1024 * 1024;

export type Verdict =
  | {
      readonly kind: 'erased';
      readonly level: 'full' | 'sampled';
      /** Blocks of 4 KiB that were read; of a full reading all, the last of a span in part. */
      readonly placesRead: number;
      readonly bytesRead: number;
      /** Bytes that the verdict speaks of; the share read is `bytesRead` of these. */
      readonly bytesExamined: number;
    }
  | { readonly kind: 'notErased'; readonly reason: string; readonly offset: number }
  | { readonly kind: 'unverified'; readonly reason: string };

export interface VerdictQuestion {
  readonly method: ErasureMethod;
  readonly plan: ChallengePlan;
  /** The region's seed (`regionSeed`). */
  readonly seed: Uint8Array;
  /** The declared value of deallocated blocks, when there is one; zero is always accepted. */
  readonly deallocatedByte?: 0x00 | 0xff;
  /** The challenge blocks were read back as written before the erasure began. */
  readonly challengeProved: boolean;
}

export type BlockReadResult =
  /**
   * Sampled: one block of a planned offset. Full: a piece of a span of at most `chunkBytesMax`
   * bytes, whole sectors of 512, in any order but nearly ascending.
   */
  | { readonly kind: 'block'; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: 'ioError'; readonly offset: number; readonly message: string };

/** Takes pieces one by one, so that the caller may reuse one buffer. */
export interface VerdictReader {
  /** Judges one piece; false when the verdict is certain and reading on is useless. */
  add(read: BlockReadResult): boolean;
  finish(): Verdict;
}

const sectorBytes = 512;
const challengeMissing = 'nothing proves that a challenge was written before the erasure';

/**
 * Keeps account of the blocks that were read, and of the missing ones; by the level of the plan.
 */
interface Account {
  /** Takes a piece; why it does not count, or undefined. */
  take(offset: number, length: number): string | undefined;
  /** Why the reading is not whole, or undefined. */
  lack(): string | undefined;
  placesRead(): number;
  bytesRead(): number;
}

/** Starts judging one region. */
export function startVerdict(question: VerdictQuestion): VerdictReader {
  const { plan } = question;
  const account = accountOf(plan);
  const judge = leavesContent(question.method) ? challengeJudge(question) : fillJudge(question);
  let proof: Verdict | undefined;
  let doubt: Verdict | undefined;

  function take(offset: number, bytes: Uint8Array): void {
    const problem = account.take(offset, bytes.length);
    if (problem !== undefined) doubt ??= unverified(problem);
    proof ??= judge(offset, bytes);
  }

  return {
    add(read) {
      if (!question.challengeProved) return false;
      if (read.kind === 'block') take(read.offset, read.bytes);
      else doubt ??= unverified(`I/O error at ${read.offset}: ${read.message}`);
      return proof === undefined;
    },
    finish() {
      if (!question.challengeProved) return unverified(challengeMissing);
      if (proof !== undefined) return proof;
      if (doubt !== undefined) return doubt;
      const lack = account.lack();
      if (lack !== undefined) return unverified(lack);
      return {
        kind: 'erased',
        level: plan.reading.level,
        placesRead: account.placesRead(),
        bytesRead: account.bytesRead(),
        bytesExamined: plan.bytesExamined,
      };
    },
  };
}

/**
 * The verdict over several regions of one device: the worst one, or the sums. It is `full` only
 * when every region was read whole.
 */
export function combineVerdicts(verdicts: readonly Verdict[]): Verdict {
  const left = verdicts.find((verdict) => verdict.kind === 'notErased');
  const doubt = left ?? verdicts.find((verdict) => verdict.kind === 'unverified');
  if (doubt !== undefined) return doubt;
  const erased = verdicts.filter((verdict) => verdict.kind === 'erased');
  if (erased.length === 0) return unverified('no region was read');
  const sum = (of: (verdict: (typeof erased)[number]) => number) =>
    erased.reduce((total, verdict) => total + of(verdict), 0);
  return {
    kind: 'erased',
    level: erased.every(({ level }) => level === 'full') ? 'full' : 'sampled',
    placesRead: sum(({ placesRead }) => placesRead),
    bytesRead: sum(({ bytesRead }) => bytesRead),
    bytesExamined: sum(({ bytesExamined }) => bytesExamined),
  };
}

function unverified(reason: string): Verdict & { readonly kind: 'unverified' } {
  return { kind: 'unverified', reason };
}

function accountOf(plan: ChallengePlan): Account {
  return plan.reading.level === 'full'
    ? fullAccount(plan.reading.spans)
    : sampledAccount(plan.reading.offsets);
}

function sampledAccount(offsets: readonly number[]): Account {
  const planned = new Set(offsets);
  return {
    take(offset, length) {
      // A block that is not planned is judged, but counts for nothing.
      if (!planned.delete(offset) || length === blockBytes) return undefined;
      return `${length} bytes instead of ${blockBytes} at ${offset}`;
    },
    lack() {
      if (planned.size > 0) return `${planned.size} planned places were never read`;
      return offsets.length === 0 ? 'no place was planned to be read' : undefined;
    },
    placesRead: () => offsets.length,
    bytesRead: () => offsets.length * blockBytes,
  };
}

function fullAccount(spans: readonly { offset: number; length: number }[]): Account {
  const coverage = startCoverage(spans);
  return {
    take(offset, length) {
      if (length > chunkBytesMax || length % sectorBytes !== 0) {
        return `a piece of ${length} bytes at ${offset} is no whole number of sectors`;
      }
      return coverage.take(offset, length);
    },
    lack() {
      const missing = coverage.missing();
      if (missing > 0) return `${missing} bytes were never read`;
      return spans.length === 0 ? 'nothing was planned to be read' : undefined;
    },
    placesRead: () => spans.reduce((sum, { length }) => sum + Math.ceil(length / blockBytes), 0),
    bytesRead: () => spans.reduce((sum, { length }) => sum + length, 0),
  };
}

type Judge = (offset: number, bytes: Uint8Array) => Verdict | undefined;

/**
 * Every block of 4 KiB is all zero, or all the declared deallocated value: undefined. Else the
 * proof. A piece that is all one of both costs one comparison.
 */
function fillJudge({ deallocatedByte }: VerdictQuestion): Judge {
  const isFilled = (bytes: Uint8Array) =>
    isFilledWith(bytes, 0) || (deallocatedByte === 0xff && isFilledWith(bytes, 0xff));
  return (offset, bytes) => {
    if (isFilled(bytes)) return undefined;
    for (let start = 0; start < bytes.length; start += blockBytes) {
      const block = bytes.subarray(start, start + blockBytes);
      if (!isFilled(block)) return leftByte(offset + start, block, deallocatedByte ?? 0);
    }
    return undefined;
  };
}

function leftByte(offset: number, block: Uint8Array, deallocatedByte: number): Verdict {
  const fill = block[0] === 0 ? 0 : deallocatedByte;
  const at = block.findIndex((byte) => byte !== fill);
  const position = offset + at;
  const found = (block[at] ?? 0).toString(16).padStart(2, '0');
  const reason = `byte 0x${found} is left at offset ${position} where 0x00 was expected`;
  return { kind: 'notErased', reason, offset: position };
}

/**
 * The first cache line is `value`, and every byte equals the byte one line before it: that reads
 * half the memory that a comparison with other bytes reads.
 */
function isFilledWith(bytes: Uint8Array, value: number): boolean {
  const lineBytes = Math.min(64, bytes.length);
  for (let at = 0; at < lineBytes; at++) if (bytes[at] !== value) return false;
  const before = bytes.subarray(0, bytes.length - lineBytes);
  return Buffer.compare(bytes.subarray(lineBytes), before) === 0;
}

/** A sector of the challenge that survived, or undefined. */
function challengeJudge({ plan, seed }: VerdictQuestion): Judge {
  const sectors = new Map<number, Uint8Array>();
  for (const challenge of plan.challenges) {
    const content = challengeContent(seed, challenge);
    for (let at = 0; at < blockBytes; at += sectorBytes) {
      sectors.set(challenge + at, content.subarray(at, at + sectorBytes));
    }
  }
  return (offset, bytes) => {
    for (let at = 0; at + sectorBytes <= bytes.length; at += sectorBytes) {
      const written = sectors.get(offset + at);
      if (written === undefined) continue;
      if (Buffer.compare(bytes.subarray(at, at + sectorBytes), written) !== 0) continue;
      const reason = `the challenge written at offset ${offset + at} is still readable`;
      return { kind: 'notErased', reason, offset: offset + at };
    }
    return undefined;
  };
}
