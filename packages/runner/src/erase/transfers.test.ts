import { expect, test } from 'vitest';
import { discardPieceBytes } from './method.ts';
import { roundedDurationText, TransferPace } from './pace.ts';
import { Slots } from './slots.ts';
import { inFlight, splitSpans, transfersInFlight } from './transfers.ts';

function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

test('a given number of transfers is under way, each in a slot of its own', async () => {
  const slots = new Set<number>();
  let most = 0;
  await inFlight(Array.from({ length: 20 }).keys(), async (_item, slot) => {
    expect(slots.has(slot)).toBe(false);
    slots.add(slot);
    most = Math.max(most, slots.size);
    await settled();
    slots.delete(slot);
    return true;
  });
  expect(most).toBe(transfersInFlight);
});

test('transfers end with the first error, once none is under way', async () => {
  let underWay = 0;
  const begun: number[] = [];
  const all = inFlight(Array.from({ length: 50 }).keys(), async (item) => {
    begun.push(item);
    underWay += 1;
    await settled();
    underWay -= 1;
    if (item === 5) throw new Error('the fifth');
    return true;
  });
  await expect(all).rejects.toThrow('the fifth');
  expect(underWay).toBe(0);
  expect(begun.length).toBeLessThan(5 + 2 * transfersInFlight);
});

test('transfers stop once the caller needs no more of them', async () => {
  const begun: number[] = [];
  await inFlight(Array.from({ length: 50 }).keys(), async (item) => {
    begun.push(item);
    await settled();
    return item < 9;
  });
  expect(begun.length).toBeLessThan(10 + transfersInFlight);
});

test('spans are cut into transfers without a gap', () => {
  const spans = [
    { offset: 0, length: 10 },
    { offset: 32, length: 4 },
  ];
  expect([...splitSpans(spans, 4)]).toEqual([
    { offset: 0, length: 4 },
    { offset: 4, length: 4 },
    { offset: 8, length: 2 },
    { offset: 32, length: 4 },
  ]);
});

test.each([undefined, 4096, 42 * 1024 ** 2, 24_576, 128 * 1024 ** 3])(
  'no unit of discard (%s) is shared by two pieces',
  (discardGranularityBytes) => {
    const region = { name: 'sda', sizeBytes: 2 ** 40, logicalBlockBytes: 512 };
    const unit = discardGranularityBytes === undefined ? {} : { discardGranularityBytes };
    const spans = [{ offset: 0, length: region.sizeBytes }];
    const pieces = [...splitSpans(spans, discardPieceBytes({ ...region, ...unit }))];
    expect(pieces.every(({ offset }) => offset % (discardGranularityBytes ?? 1) === 0)).toBe(true);
    expect(pieces.reduce((sum, { length }) => sum + length, 0)).toBe(region.sizeBytes);
  },
);

test('a slot goes to the first waiter, also after a failure', async () => {
  const slots = new Slots(2);
  const order: number[] = [];
  const all = [0, 1, 2, 3].map((each) =>
    slots.run(async () => {
      order.push(each);
      await settled();
      if (each === 0) throw new Error('failed');
    }),
  );
  expect(order).toEqual([0, 1]);
  await Promise.allSettled(all);
  expect(order).toEqual([0, 1, 2, 3]);
});

test('a slot that was given back is free for a later caller', async () => {
  const slots = new Slots(1);
  await slots.run(settled);
  let hasRun = false;
  void slots.run(async () => {
    hasRun = true;
  });
  await settled();
  expect(hasRun).toBe(true);
});

test('speed and time left are shown, also for a disk that takes longer than a day', () => {
  let nowMs = 0;
  const bytesPerMs = 180_000;
  const pace = new TransferPace({ suspendAwareMs: () => nowMs }, 20e12);
  expect(pace.text()).toBe('');
  pace.add(0);
  nowMs = 3_600_000;
  pace.add(nowMs * bytesPerMs);
  expect(pace.text()).toBe('180 MB/s, 29 h 52 min left');
  expect(pace.fraction).toBeCloseTo(0.0324);
});

test.each([
  [900, '1 s'],
  [61_000, '2 min'],
  [3_600_000, '1 h'],
  [3_660_000, '1 h 1 min'],
])('%d ms are shown as %s', (ms, text) => {
  expect(roundedDurationText(ms)).toBe(text);
});
