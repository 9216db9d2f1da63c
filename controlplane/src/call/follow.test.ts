import { expect, test, vi } from 'vitest';
import { withTicks } from './follow.ts';

test('a tick comes in its turn while items wait all the time', async () => {
  async function* items() {
    for (let each = 0; ; each += 1) yield each;
  }
  let due: () => void = () => {};
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (_ms: number, act: () => void) => {
      due = act;
      return () => {};
    },
  };
  const kinds: string[] = [];
  for await (const { kind } of withTicks(items(), 1_000, clock)) {
    kinds.push(kind);
    // By then the next item is there.
    await new Promise(setImmediate);
    if (kinds.length === 2) due();
    if (kinds.length === 5) break;
  }
  expect(kinds).toEqual(['item', 'item', 'tick', 'item', 'item']);
});

test('ticks add no listener to the item that they wait for', async () => {
  const due: (() => void)[] = [];
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (_ms: number, act: () => void) => {
      due.push(act);
      return () => {};
    },
  };
  const item = Promise.withResolvers<IteratorResult<string>>();
  const { promise } = item;
  const heard = vi.spyOn(promise, 'then');
  const items = { [Symbol.asyncIterator]: () => ({ next: () => promise }) };
  const ticking = withTicks(items, 1_000, clock);
  for (let tick = 0; tick < 10; tick += 1) {
    const next = ticking.next();
    await new Promise(setImmediate);
    due[tick]?.();
    expect(await next).toEqual({ done: false, value: { kind: 'tick' } });
  }
  expect(heard).toHaveBeenCalledTimes(1);
  item.resolve({ done: false, value: 'late' });
  expect(await ticking.next()).toEqual({ done: false, value: { kind: 'item', item: 'late' } });
  await ticking.return(undefined);
});

test('items that break off end the ticks with their error', async () => {
  let isCancelled = false;
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: () => () => {
      isCancelled = true;
    },
  };
  async function* items() {
    yield 'first';
    throw new Error('broken off');
  }
  const ticking = withTicks(items(), 1_000, clock);
  expect(await ticking.next()).toMatchObject({ value: { item: 'first' } });
  await expect(ticking.next()).rejects.toThrow('broken off');
  expect(isCancelled).toBe(true);
});
