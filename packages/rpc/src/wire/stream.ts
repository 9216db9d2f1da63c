/**
 * Node's object streams ↔ async iterables, so that handlers and callers see only iterables.
 *
 * Invariants:
 * 1. A reader that stops, and a signal that aborts, both end the other side promptly: nothing waits
 *    for a peer that has gone.
 * 2. The writer is slowed to the reader's pace: at most one buffer of the stream is filled.
 */
import type { Readable, Writable } from 'node:stream';
import type { Pace } from '@rackwright/messages';
import { abandon, Waits } from '@rackwright/platform';

/**
 * Resolves with the value, or undefined as soon as `signal` aborts. Rejects as `promise` does. For
 * many promises, one after another, there is `Waits`.
 */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const aborted = Promise.withResolvers<undefined>();
  const onAbort = () => aborted.resolve(undefined);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Writes each item of `items` into `sink` until they end (true) or `signal` aborts (false). Does
 * not end the sink. Rejects with what `items` throws.
 */
export async function pump<T>(
  items: AsyncIterable<T>,
  sink: Writable,
  encode: (item: T) => Buffer,
  signal: AbortSignal,
): Promise<boolean> {
  const iterator = items[Symbol.asyncIterator]();
  const waits = new Waits(signal);
  let finished = false;
  try {
    while (!signal.aborted) {
      const next = await waits.on(iterator.next());
      if (next === undefined) return false;
      if (next.done === true) {
        finished = true;
        return true;
      }
      if (!sink.write(encode(next.value))) await drained(sink, signal);
    }
    return false;
  } finally {
    waits.over();
    // Not awaited: a generator that is still waiting would delay us (invariant 1).
    if (!finished) abandon(iterator);
  }
}

/**
 * Yields each item until they end (true) or `signal` aborts (false): then nothing waits for their
 * producer.
 */
export async function* untilAborted<T>(
  items: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, boolean, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  const waits = new Waits(signal);
  let finished = false;
  try {
    while (!signal.aborted) {
      const next = await waits.on(iterator.next());
      if (next === undefined) return false;
      if (next.done === true) {
        finished = true;
        return true;
      }
      yield next.value;
    }
    return false;
  } finally {
    waits.over();
    // Not awaited, as in `pump`.
    if (!finished) abandon(iterator);
  }
}

/** The place of a message in its stream; the first has bounds of its own. */
interface MessagePosition {
  readonly isFirst: boolean;
}

/** The reader of a stream's messages; `isFirst`: no handler knows of the call so far. */
export interface MessageReader<T> {
  /** The cost of decoding it; throws when it is more than is taken. */
  weigh(bytes: Buffer, position: MessagePosition): number;
  decode(bytes: Buffer, position: MessagePosition): T;
}

/** What `source` yields, decoded; ends early when `signal` aborts, with what `onAbort` makes. */
export async function* iterate<T>(
  source: Readable,
  reader: MessageReader<T>,
  signal: AbortSignal,
  onAbort: () => Error,
  pace?: Pace,
): AsyncGenerator<T, void, undefined> {
  const iterator = source.iterator({ destroyOnReturn: false });
  const waits = new Waits(signal);
  try {
    for (let isFirst = true; ; isFirst = false) {
      const next = await waits.on(iterator.next());
      if (next === undefined) throw onAbort();
      if (next.done === true) return;
      const bytes = next.value as Buffer;
      const cost = reader.weigh(bytes, { isFirst });
      const wait = pace?.(cost);
      if (wait !== undefined) {
        await waits.on(wait);
        if (signal.aborted) throw onAbort();
      }
      yield reader.decode(bytes, { isFirst });
    }
  } finally {
    waits.over();
  }
}

function drained(sink: Writable, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      sink.removeListener('drain', done);
      sink.removeListener('close', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    if (signal.aborted) return done();
    sink.once('drain', done);
    sink.once('close', done);
    signal.addEventListener('abort', done, { once: true });
  });
}
