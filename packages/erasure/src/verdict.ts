/**
 * The verdict over what was read from a device after its erasure. Exit codes are not evidence;
 * only blocks are (DESIGN §5, Verdict). Pure.
 *
 * Invariants:
 * V1 `erased` needs every planned place to have been read: an empty or partial reading, a place
 *    read twice instead of another, or a short block is `unverified`.
 * V2 Proof that bytes are left outranks an I/O error elsewhere: `notErased` wins.
 * V3 After a cryptographic erase any content is fine but the challenge; one equal sector of 512
 *    bytes is enough to say `notErased`.
 * V4 By whatever method: without a challenge that was proved to have been written, nothing can be
 *    told. A disk that nobody touched is mostly zeros as well, so its places prove nothing.
 */
import { blockBytes, type ChallengePlan, challengeContent } from './challenge.ts';
import type { ErasureMethod } from './method.ts';

export type Verdict =
  | { readonly kind: 'erased'; readonly placesRead: number; readonly bytesRead: number }
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

export type BlockRead =
  | { readonly kind: 'block'; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: 'ioError'; readonly offset: number; readonly message: string };

/** Takes blocks one by one, so that the caller may reuse one buffer. */
export interface VerdictReader {
  /** Judges one block; false when the verdict is certain and reading on is useless. */
  add(read: BlockRead): boolean;
  finish(): Verdict;
}

const sectorBytes = 512;
const challengeMissing = 'nothing proves that a challenge was written before the erasure';

/** Starts judging one region. */
export function startVerdict(question: VerdictQuestion): VerdictReader {
  const planned = new Set(question.plan.readBacks);
  const challenges = new Set(question.plan.challenges);
  let proof: Verdict | undefined;
  let doubt: Verdict | undefined;
  let bytesRead = 0;
  const contentAllowed = question.method === 'nvmeFormatCrypto';

  function judgeBlock(offset: number, bytes: Uint8Array): void {
    if (!planned.delete(offset)) return;
    if (bytes.length !== blockBytes) {
      doubt ??= unverified(`${bytes.length} bytes instead of ${blockBytes} at ${offset}`);
      return;
    }
    bytesRead += bytes.length;
    if (contentAllowed) {
      proof ??= judgeChallenge(challenges.has(offset), question.seed, offset, bytes);
      return;
    }
    proof ??= judgeFill(offset, bytes, question.deallocatedByte);
  }

  return {
    add(read) {
      if (!question.challengeProved) return false;
      if (read.kind === 'block') judgeBlock(read.offset, read.bytes);
      else doubt ??= unverified(`I/O error at ${read.offset}: ${read.message}`);
      return proof === undefined;
    },
    finish() {
      if (!question.challengeProved) return unverified(challengeMissing);
      if (proof !== undefined) return proof;
      if (doubt !== undefined) return doubt;
      if (planned.size > 0) return unverified(`${planned.size} planned places were never read`);
      const placesRead = question.plan.readBacks.length;
      if (placesRead === 0) return unverified('no place was planned to be read');
      return { kind: 'erased', placesRead, bytesRead };
    },
  };
}

/** The verdict over several regions of one device: the worst one, or the sums. */
export function combineVerdicts(verdicts: readonly Verdict[]): Verdict {
  const left = verdicts.find((verdict) => verdict.kind === 'notErased');
  const doubt = left ?? verdicts.find((verdict) => verdict.kind === 'unverified');
  if (doubt !== undefined) return doubt;
  let placesRead = 0;
  let bytesRead = 0;
  for (const verdict of verdicts) {
    if (verdict.kind !== 'erased') continue;
    placesRead += verdict.placesRead;
    bytesRead += verdict.bytesRead;
  }
  if (placesRead === 0) return unverified('no region was read');
  return { kind: 'erased', placesRead, bytesRead };
}

function unverified(reason: string): Verdict {
  return { kind: 'unverified', reason };
}

/** All bytes zero, or all bytes the declared deallocated value: undefined. Else the proof. */
function judgeFill(
  offset: number,
  bytes: Uint8Array,
  deallocatedByte: number | undefined,
): Verdict | undefined {
  const fill = bytes[0] === 0 ? 0 : (deallocatedByte ?? 0);
  const at = bytes.findIndex((byte) => byte !== fill);
  if (at === -1) return undefined;
  const place = offset + at;
  const found = (bytes[at] ?? 0).toString(16).padStart(2, '0');
  const reason = `byte 0x${found} is left at offset ${place} where 0x00 was expected`;
  return { kind: 'notErased', reason, offset: place };
}

/** A sector of the challenge that survived a cryptographic erase, or undefined. */
function judgeChallenge(
  isChallenge: boolean,
  seed: Uint8Array,
  offset: number,
  bytes: Uint8Array,
): Verdict | undefined {
  if (!isChallenge) return undefined;
  const challenge = challengeContent(seed, offset);
  for (let start = 0; start < blockBytes; start += sectorBytes) {
    const sector = bytes.subarray(start, start + sectorBytes);
    if (sector.every((byte, index) => byte === challenge[start + index])) {
      const place = offset + start;
      const reason = `the challenge written at offset ${place} is still readable`;
      return { kind: 'notErased', reason, offset: place };
    }
  }
  return undefined;
}
