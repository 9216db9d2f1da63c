import { asWriteId, type Entry } from '@rackwright/store';
import { expect, test } from 'vitest';
import { inSlices, pageSizeDefault, pageSizeMax, pageSizeOf, sliceMs } from './paging.ts';

test.each([
  [undefined, pageSizeDefault],
  [0, pageSizeDefault],
  [1, 1],
  [pageSizeMax, pageSizeMax],
  [pageSizeMax + 1, pageSizeMax],
  [4_294_967_295, pageSizeMax],
])('a page size of %s is %i', (asked, used) => {
  expect(pageSizeOf(asked)).toBe(used);
});

test('other work has its turn whenever entries were read for as long as a slice', async () => {
  let nowMs = 1_000;
  const seen: string[] = [];
  const clock = {
    nowMs: () => nowMs,
    after: (_delayMs: number, turn: () => void) => {
      seen.push('turn');
      queueMicrotask(turn);
      return () => undefined;
    },
  };
  const entry: Entry = {
    key: 'hosts.a',
    value: new Uint8Array(),
    revision: 1,
    writeId: asWriteId('w'),
  };
  const read = inSlices(clock, async ({ key }) => {
    nowMs += sliceMs / 2;
    seen.push(key);
  });
  for (let each = 0; each < 5; each += 1) await read(entry);
  const { key } = entry;
  expect(seen).toEqual([key, key, 'turn', key, key, 'turn', key]);
  nowMs -= 500;
  await read(entry);
  expect(seen.slice(7)).toEqual(['turn', key]);
});
