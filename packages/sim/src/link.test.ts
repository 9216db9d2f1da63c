import { expect, test } from 'vitest';
import { EventHeap } from './heap.ts';
import { openLink } from './link.ts';

function setUp() {
  const heap = new EventHeap();
  const heard: string[] = [];
  const side = (name: string) => ({
    onMessage: (message: string) => void heard.push(`${name} ${message}`),
    onClosed: () => void heard.push(`${name} closed at ${heap.nowMs}`),
  });
  const link = openLink<string, string>({ heap, delayMs: () => 5 }, side('near'), side('far'));
  const until = (atMs: number) => heap.run(atMs, () => false);
  return { heap, heard, link, until };
}

test('a link keeps the order of what one side sends', async () => {
  const { heard, link, until } = setUp();
  for (const message of ['a', 'b', 'c']) link.near.send(message);
  await until(100);
  expect(heard).toEqual(['far a', 'far b', 'far c']);
});

test('a link loses what is under way when it is cut, and tells both sides', async () => {
  const { heard, link, until } = setUp();
  link.near.send('a');
  link.cut();
  await until(100);
  expect(heard).toEqual(['near closed at 0', 'far closed at 0']);
  expect(link.isOpen()).toBe(false);
});

test('half open, the one side knows and the other learns it late', async () => {
  const { heard, link, until } = setUp();
  link.halfOpen('far', 40_000);
  link.far.send('into the void');
  await until(100_000);
  expect(heard).toEqual(['near closed at 0', 'far closed at 40000']);
});

test('a blocked direction holds its messages back, the other one does not', async () => {
  const { heard, link, until } = setUp();
  link.block('toFar', true);
  link.near.send('a');
  link.near.send('b');
  link.far.send('x');
  await until(1_000);
  expect(heard).toEqual(['near x']);
  link.block('toFar', false);
  link.near.send('c');
  await until(2_000);
  expect(heard).toEqual(['near x', 'far a', 'far b', 'far c']);
});
