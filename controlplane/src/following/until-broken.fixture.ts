import type { WatchEvent } from '@rackwright/store';

/** The events of a watch until `broken` settles: with its last event, or with its error. */
export async function* untilBroken(
  events: AsyncIterable<WatchEvent>,
  broken: Promise<IteratorResult<WatchEvent>>,
): AsyncGenerator<WatchEvent> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([iterator.next(), broken]);
    if (next.done === true) return;
    yield next.value;
  }
}
