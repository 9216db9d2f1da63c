/** A stream that is taken in pieces of known length. */
import type { Readable } from 'node:stream';

/**
 * Answers a function that takes the next `length` bytes of `stream`, or undefined once it has ended
 * without them. Only one caller at a time.
 */
export function createByteQueue(stream: Readable): (length: number) => Promise<Buffer | undefined> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let held: Buffer[] = [];
  let heldBytes = 0;
  return async (length) => {
    while (heldBytes < length) {
      const next = await chunks.next().catch(() => ({ done: true as const, value: undefined }));
      if (next.done === true) return undefined;
      held.push(next.value);
      heldBytes += next.value.length;
    }
    const [only, ...more] = held;
    const all = only !== undefined && more.length === 0 ? only : Buffer.concat(held);
    held = all.length > length ? [all.subarray(length)] : [];
    heldBytes -= length;
    return all.subarray(0, length);
  };
}
