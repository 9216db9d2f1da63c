/**
 * The output of steps' programs while it arrives: only in memory, until its end is stored with the
 * step's result.
 *
 * 1. A host has one ring buffer, of the operation that wrote last; within it offsets only grow.
 * 2. Everything is bounded; dropped output shows as a gap of offsets. A piece costs no more than
 *    its size and that of the pieces it is merged with, also when the pieces are very small.
 */
import type { agent, HostUid, OperationId } from '@rackwright/messages';
import type { Cancel } from '@rackwright/platform';

/** The most bytes that are kept for one operation. */
export const ringBytesMax = 64 * 1024;
/** The most hosts with a ring; the one that has been silent longest is dropped first. */
export const ringsMax = 1024;
/** The most pieces of one operation, of any size. */
export const piecesMax = 256;
/** Pieces without a gap between them become one, up to this size. */
const mergedBytesMax = 1024;

/** A part of an output, and its offset in the whole. */
export interface OutputPiece {
  readonly offset: bigint;
  readonly content: Uint8Array;
}

interface Ring {
  readonly operationId: OperationId;
  pieces: OutputPiece[];
  bytes: number;
  end: bigint;
}

export class StepLogs {
  /** By host uid; the host that wrote last is at the end. */
  readonly #rings = new Map<HostUid, Ring>();
  readonly #observers = new Map<OperationId, Set<() => void>>();

  /** Takes a piece. The sender must be permitted to report for the host. */
  take({ operationId, hostUid, offset, content }: agent.StepLog): void {
    if (!operationId.startsWith(`${hostUid}/`) || content.length === 0) return;
    const present = this.#rings.get(hostUid);
    const ring =
      present?.operationId === operationId
        ? present
        : { operationId, pieces: [], bytes: 0, end: 0n };
    if (offset < ring.end) return;
    this.#rings.delete(hostUid);
    this.#rings.set(hostUid, ring);
    append(ring, { offset, content });
    const [silent] = this.#rings.keys();
    if (this.#rings.size > ringsMax && silent !== undefined) this.#rings.delete(silent);
    this.#notify(operationId);
  }

  /** Whether the operation was the last one of its host to write. */
  isOf(hostUid: HostUid, operationId: OperationId): boolean {
    return this.#rings.get(hostUid)?.operationId === operationId;
  }

  /** The kept output of an operation from `offset` on; the first piece may begin later. */
  read(hostUid: HostUid, operationId: OperationId, offset: bigint): OutputPiece[] {
    const ring = this.#rings.get(hostUid);
    if (ring?.operationId !== operationId) return [];
    return ring.pieces.flatMap((piece) => from(piece, offset));
  }

  /** The operation is over, and its end is stored. */
  ended(hostUid: HostUid, operationId: OperationId): void {
    if (this.#rings.get(hostUid)?.operationId === operationId) this.#rings.delete(hostUid);
    this.#notify(operationId);
  }

  /** Calls `observer` whenever the operation writes or ends. */
  onChange(operationId: OperationId, observer: () => void): Cancel {
    const observers = this.#observers.get(operationId) ?? new Set();
    this.#observers.set(operationId, observers.add(observer));
    return () => {
      observers.delete(observer);
      const isEmpty = observers.size === 0 && this.#observers.get(operationId) === observers;
      if (isEmpty) this.#observers.delete(operationId);
    };
  }

  #notify(operationId: OperationId): void {
    for (const observer of [...(this.#observers.get(operationId) ?? [])]) observer();
  }
}

function append(ring: Ring, { offset, content }: OutputPiece): void {
  const end = offset + BigInt(content.length);
  const [kept] = from({ offset, content }, end - BigInt(ringBytesMax));
  if (kept === undefined) return;
  const last = ring.pieces.at(-1);
  const bytes = (last?.content.length ?? 0) + kept.content.length;
  if (last !== undefined && ring.end === kept.offset && bytes <= mergedBytesMax) {
    const merged = new Uint8Array(bytes);
    merged.set(last.content);
    merged.set(kept.content, last.content.length);
    ring.pieces[ring.pieces.length - 1] = { offset: last.offset, content: merged };
  } else {
    // A copy, also of a Buffer: a piece must not hold the message that it came in.
    ring.pieces.push({ offset: kept.offset, content: new Uint8Array(kept.content) });
  }
  ring.bytes += kept.content.length;
  ring.end = end;
  shorten(ring);
}

/** Drops the excess from the front. */
function shorten(ring: Ring): void {
  while (ring.bytes > ringBytesMax || ring.pieces.length > piecesMax) {
    const first = ring.pieces.shift();
    if (first === undefined) return;
    ring.bytes -= first.content.length;
    const missing = ringBytesMax - ring.bytes;
    if (missing <= 0 || ring.pieces.length >= piecesMax) continue;
    const [rest] = from(first, first.offset + BigInt(first.content.length - missing));
    if (rest === undefined) continue;
    ring.pieces.unshift(rest);
    ring.bytes += rest.content.length;
  }
}

/** The part of a piece from `offset` on; empty when the piece ends before. */
function from(piece: OutputPiece, offset: bigint): OutputPiece[] {
  if (offset <= piece.offset) return [piece];
  const skip = offset - piece.offset;
  if (skip >= BigInt(piece.content.length)) return [];
  return [{ offset, content: piece.content.subarray(Number(skip)) }];
}
