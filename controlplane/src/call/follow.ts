/** Following the store for a watch stream. */
import { unavailable } from '@rackwright/messages';
import { abandon, type Cancel, type Clock } from '@rackwright/platform';
import { type Change, type StateStore, StoreError, type StoreRevision } from '@rackwright/store';
import { watchCollections } from '../access/index.ts';
import { startOver } from './position.ts';

/**
 * Every change of these collections after `from`, until `signal` aborts. Throws `outOfRange` when
 * the store no longer has all of them, so that a stream never continues with a gap.
 */
export async function* follow(
  store: StateStore,
  from: StoreRevision,
  collections: readonly [string, ...string[]],
  signal: AbortSignal,
): AsyncGenerator<Change, void, undefined> {
  try {
    const [only] = collections;
    const events =
      collections.length === 1
        ? store.watch(from, only, signal)
        : watchCollections(store, from, collections, signal);
    for await (const event of events) {
      if (event.kind === 'compacted') {
        throw startOver('POSITION_COMPACTED', 'The store no longer has every change since then.');
      }
      yield event;
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw unavailable('STORE_UNAVAILABLE', 'The watch broke off; resume it.', undefined, error);
  }
}

export type TickedItem<T> = { readonly kind: 'item'; readonly item: T } | { readonly kind: 'tick' };

/**
 * The items as they come, and a tick in each interval, also when many items wait; the ticks share
 * one timer. At most one item is read ahead.
 *
 * Promise.race would add a reaction to the item that is to come, for every tick until then.
 */
export async function* withTicks<T>(
  items: AsyncIterable<T>,
  intervalMs: number,
  clock: Clock,
): AsyncGenerator<TickedItem<T>, void, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  /** At most one item and one tick; the tick is first. */
  const ready: (() => IteratorResult<T> | 'tick')[] = [];
  let wake = (): void => undefined;
  const add = (take: () => IteratorResult<T>) => {
    ready.push(take);
    wake();
  };
  const ask = () => {
    iterator.next().then(
      (next) => add(() => next),
      (error: unknown) =>
        add(() => {
          throw error;
        }),
    );
  };
  const nextTick = (): Cancel =>
    clock.after(intervalMs, () => {
      ready.unshift(() => 'tick');
      wake();
    });
  ask();
  let cancel = nextTick();
  try {
    for (;;) {
      const next = ready.shift()?.();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (next === 'tick') {
        cancel = nextTick();
        yield { kind: 'tick' };
      } else {
        if (next.done === true) return;
        ask();
        yield { kind: 'item', item: next.value };
      }
    }
  } finally {
    cancel();
    abandon(iterator);
  }
}
