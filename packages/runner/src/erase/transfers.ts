/**
 * Several transfers of one device under way at once: while one is in the device, the next ones
 * wait for it there and not in us.
 *
 * Invariant: when a function of this module has settled, nothing of it is under way any more.
 */
import type { ByteSpan } from '@rackwright/erasure';
import { type OpenRegion, streamBytesMax } from '../machine/block-devices.ts';
import { transferMemory } from '../machine/transfer-memory.ts';

/** Transfers of one device that are under way at once. */
export const transfersInFlight = 4;

/** Read at once, bytes; every device at work has memory for `transfersInFlight` of them. */
export const readBytesMax = streamBytesMax / 2;

/** Asked before each transfer; rejects to stop. */
export type TransferGate = () => Promise<void>;

/**
 * Runs `act` for each item, `transfersInFlight` at once, in the order of the items as far as their
 * start goes. Stops taking items when one answers false or rejects; rejects with the first error.
 */
export async function inFlight<T>(
  items: Iterable<T>,
  act: (item: T, slot: number) => Promise<boolean>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  let failure: { readonly error: unknown } | undefined;
  let isOver = false;
  const work = async (slot: number): Promise<void> => {
    while (!isOver) {
      const next = iterator.next();
      if (next.done === true) return;
      try {
        if (!(await act(next.value, slot))) isOver = true;
      } catch (error) {
        failure ??= { error };
        isOver = true;
      }
    }
  };
  await Promise.all(Array.from({ length: transfersInFlight }, (_, slot) => work(slot)));
  if (failure !== undefined) throw failure.error;
}

/** Cuts spans into transfers. */
export function* splitSpans(spans: Iterable<ByteSpan>, most = readBytesMax): Generator<ByteSpan> {
  for (const { offset, length } of spans) {
    for (let at = 0; at < length; at += most) {
      yield { offset: offset + at, length: Math.min(most, length - at) };
    }
  }
}

/** Writes zeros over the spans. `tell` gets the bytes of each transfer that is done. */
export async function writeZeros(
  open: OpenRegion,
  spans: Iterable<ByteSpan>,
  transferGate: TransferGate,
  onBytes: (bytes: number) => void,
): Promise<void> {
  await inFlight(splitSpans(spans, streamBytesMax), async ({ offset, length }) => {
    await transferGate();
    await open.writeZeros(offset, length);
    onBytes(length);
    return true;
  });
}

/** Memory for the reads of one device that are under way at once. */
export type ReadMemory = readonly Uint8Array[];

/** Not in use, for the next one: making such memory takes address space for a while. */
const spare: ReadMemory[] = [];

/** The memory that `readPieces` uses; it is given back when nothing reads into it any more. */
export function borrowTransfers(): { readonly transfers: ReadMemory; giveBack(): void } {
  const transfers = spare.pop() ?? transferMemory(transfersInFlight, readBytesMax);
  return { transfers, giveBack: () => void spare.push(transfers) };
}

/**
 * Reads the pieces, each at most one transfer; `take` gets each as soon as it is there, and answers
 * whether reading goes on. It may not keep the bytes.
 */
export async function readPieces(
  open: OpenRegion,
  pieces: Iterable<ByteSpan>,
  memory: ReadMemory,
  take: (offset: number, read: Uint8Array | Error) => boolean,
  transferGate: TransferGate,
): Promise<void> {
  await inFlight(pieces, async ({ offset, length }, slot) => {
    await transferGate();
    const target = memory[slot]?.subarray(0, length) ?? new Uint8Array();
    let read: Uint8Array | Error = target;
    try {
      await open.readInto(offset, target);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      read = error;
    }
    return take(offset, read);
  });
}
