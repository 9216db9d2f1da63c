/** Following the store for a watch stream. */
import { unavailable } from '@rackwright/messages';
import { abandon, type Cancel, type Clock, markHandled } from '@rackwright/platform';
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
 * one timer.
 */
export async function* withTicks<T>(
  items: AsyncIterable<T>,
  intervalMs: number,
  clock: Clock,
): AsyncGenerator<TickedItem<T>, void, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  let pending = iterator.next();
  let tick = nextTick(intervalMs, clock);
  try {
    for (;;) {
      const next = await Promise.race([tick.due, pending]);
      if (next === 'tick') {
        tick = nextTick(intervalMs, clock);
        yield { kind: 'tick' };
        continue;
      }
      if (next.done === true) return;
      pending = iterator.next();
      // Awaited in the next round.
      markHandled(pending);
      yield { kind: 'item', item: next.value };
    }
  } finally {
    tick.cancel();
    abandon(iterator);
  }
}

function nextTick(intervalMs: number, clock: Clock): { due: Promise<'tick'>; cancel: Cancel } {
  let cancel: Cancel = () => undefined;
  const due = new Promise<'tick'>((resolve) => {
    cancel = clock.after(intervalMs, () => resolve('tick'));
  });
  return { due, cancel };
}
