/** A stream that is taken in pieces of known length. */
import type { Readable } from 'node:stream';

/**
 * Answers a function that takes the next `length` bytes of `stream`, or undefined once it has ended
 * without them. Only one caller at a time.
 */
export function createByteQueue(stream: Readable): (length: number) => Promise<Buffer | undefined> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let queued: Buffer[] = [];
  let queuedBytes = 0;
  return async (length) => {
    while (queuedBytes < length) {
      const next = await chunks.next().catch(() => ({ done: true as const, value: undefined }));
      if (next.done === true) return undefined;
      queued.push(next.value);
      queuedBytes += next.value.length;
    }
    const [only, ...more] = queued;
    const all = only !== undefined && more.length === 0 ? only : Buffer.concat(queued);
    queued = all.length > length ? [all.subarray(length)] : [];
    queuedBytes -= length;
    return all.subarray(0, length);
  };
}
