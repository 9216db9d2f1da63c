/** Several streams as one, each in its own order. */
import { abandon } from '@rackwright/platform';

/**
 * The items of all sources as they come; at most one item of each source waits. Ends when all
 * sources have ended, and rejects with the first rejection. When the consumer leaves, all sources
 * are closed.
 *
 * Promise.race would hold a reaction on each silent source, for every item of the others.
 */
export async function* merged<T>(
  sources: readonly AsyncIterable<T>[],
): AsyncGenerator<T, void, undefined> {
  const iterators = sources.map((source) => source[Symbol.asyncIterator]());
  const ready: (() => T | undefined)[] = [];
  let wake: (() => void) | undefined;
  let open = iterators.length;
  const advance = (take: () => T | undefined) => {
    ready.push(take);
    wake?.();
  };
  const ask = (iterator: AsyncIterator<T>) => {
    iterator.next().then(
      (next) =>
        advance(() => {
          if (next.done === true) {
            open -= 1;
            return undefined;
          }
          ask(iterator);
          return next.value;
        }),
      (error: unknown) =>
        advance(() => {
          throw error;
        }),
    );
  };
  for (const iterator of iterators) ask(iterator);
  try {
    while (open > 0) {
      const take = ready.shift();
      if (take === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      const item = take();
      if (item !== undefined) yield item;
    }
  } finally {
    for (const iterator of iterators) abandon(iterator);
  }
}
