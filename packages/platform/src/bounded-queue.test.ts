import { expect, test } from 'vitest';
import { BoundedQueue } from './bounded-queue.ts';
import { afterMicrotasks } from './testing/index.ts';

function rig() {
  const events: string[] = [];
  const ends = new Map<string, () => void>();
  const work = async (item: string): Promise<void> => {
    events.push(item);
    await new Promise<void>((resolve) => ends.set(item, resolve));
  };
  const limits = { atOnceMax: 2, waitingMax: 2 };
  const queue = new BoundedQueue(limits, work, () => events.push('idle'));
  const end = async (item: string): Promise<void> => {
    ends.get(item)?.();
    await afterMicrotasks(5);
  };
  return { events, queue, end };
}

test('a bounded number is worked on at once, and the rest in its order', async () => {
  const { events, queue, end } = rig();
  expect(['a', 'b', 'c'].map((item) => queue.add(item))).toEqual([true, true, true]);
  expect(queue.add('d', { isFirst: true })).toBe(true);
  expect(queue.size).toBe(4);
  expect(events).toEqual(['a', 'b']);
  await end('b');
  await end('a');
  expect(events).toEqual(['a', 'b', 'd', 'c']);
  await end('d');
  await end('c');
  expect(events.slice(4)).toEqual(['idle']);
});

test('more than may wait is not taken, and what waits can be taken out', async () => {
  const { events, queue, end } = rig();
  for (const item of ['a', 'b', 'c', 'd']) queue.add(item);
  expect(queue.add('e')).toBe(false);
  expect(queue.clear()).toEqual(['c', 'd']);
  await end('a');
  await end('b');
  expect(events).toEqual(['a', 'b', 'idle']);
});
