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

/** Resolves with the value, or undefined as soon as `signal` aborts. Rejects as `promise` does. */
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
  let finished = false;
  try {
    while (!signal.aborted) {
      const next = await unlessAborted(iterator.next(), signal);
      if (next === undefined) return false;
      if (next.done === true) {
        finished = true;
        return true;
      }
      if (!sink.write(encode(next.value))) await drained(sink, signal);
    }
    return false;
  } finally {
    // Not awaited: a generator that is still waiting would hold us up (invariant 1). What it
    // throws while being closed belongs to a call that is over.
    if (!finished) iterator.return?.().catch(() => undefined);
  }
}

/**
 * Yields each item until they end (true) or `signal` aborts (false): then nothing waits for who
 * makes them.
 */
export async function* untilAborted<T>(
  items: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, boolean, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  let finished = false;
  try {
    while (!signal.aborted) {
      const next = await unlessAborted(iterator.next(), signal);
      if (next === undefined) return false;
      if (next.done === true) {
        finished = true;
        return true;
      }
      yield next.value;
    }
    return false;
  } finally {
    // Not awaited, as in `pump`.
    if (!finished) iterator.return?.().catch(() => undefined);
  }
}

/** Where a message stands in its stream; the first has bounds of its own. */
interface MessagePlace {
  readonly isFirst: boolean;
}

/** How the messages of a stream are read; `isFirst`: nobody has heard of the caller so far. */
export interface MessageReader<T> {
  /** The cost of decoding it; throws when it is more than is taken. */
  weigh(bytes: Buffer, place: MessagePlace): number;
  decode(bytes: Buffer, place: MessagePlace): T;
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
  for (let isFirst = true; ; isFirst = false) {
    const next = await unlessAborted(iterator.next(), signal);
    if (next === undefined) throw onAbort();
    if (next.done === true) return;
    const bytes = next.value as Buffer;
    const cost = reader.weigh(bytes, { isFirst });
    const wait = pace?.(cost);
    if (wait !== undefined) {
      await unlessAborted(wait, signal);
      if (signal.aborted) throw onAbort();
    }
    yield reader.decode(bytes, { isFirst });
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
