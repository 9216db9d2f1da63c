import { expect, test } from 'vitest';
import { EventHeap } from './heap.ts';
import { SimProcess } from './process.ts';

function setUp(wall?: () => number) {
  const heap = new EventHeap();
  const process = new SimProcess('p', heap, wall ?? 1_000, () => false);
  const heard: string[] = [];
  const say = (text: string) => () => void heard.push(`${text} at ${heap.nowMs}`);
  const until = (atMs: number) => heap.run(atMs, () => false);
  return { heap, heard, process, say, until };
}

test('a killed process runs no timer and gets no answer', async () => {
  const { heard, process, say, until } = setUp();
  process.clock.after(10, say('timer'));
  void process.answer(10, () => 'x').then(say('answer'));
  process.kill();
  await until(100);
  expect(heard).toEqual([]);
});

test('a suspended process does what it missed when it wakes, in order', async () => {
  const { heard, process, say, until } = setUp();
  process.clock.after(10, say('first'));
  process.clock.after(20, say('second'));
  process.clock.after(60, say('third'));
  process.suspend(50);
  await until(100);
  expect(heard).toEqual(['first at 50', 'second at 50', 'third at 60']);
});

test('a timer cancelled while it is suspended does not run', async () => {
  const { heap, heard, process, say, until } = setUp();
  const cancel = process.clock.after(10, say('timer'));
  process.suspend(50);
  heap.after(30, cancel);
  await until(100);
  expect(heard).toEqual([]);
});

test('a process has a wall clock that may step, and another clock that never does', async () => {
  let offsetMs = 0;
  const wall = { nowMs: () => 0 };
  const { heap, process, until } = setUp(() => wall.nowMs());
  wall.nowMs = () => 5_000.7 + heap.nowMs + offsetMs;
  heap.after(10, () => undefined);
  await until(10);
  expect(process.clock.nowMs()).toBe(5_010);
  offsetMs = -1_000;
  expect(process.clock.nowMs()).toBe(4_010);
  expect(process.clock.suspendAwareMs()).toBe(10);
});
