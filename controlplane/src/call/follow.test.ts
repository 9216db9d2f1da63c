import { expect, test } from 'vitest';
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
