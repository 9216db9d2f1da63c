import { expect, test } from 'vitest';
import { Lanes } from './lanes.ts';

function taken(lanes: Lanes<string>, most = 1_000): string[] {
  const items: string[] = [];
  for (let item = lanes.take(); item !== undefined; item = lanes.take()) {
    items.push(item);
    if (items.length === most) break;
  }
  return items;
}

const some = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${name}${at}`);

test('each id waits once, and may come again once it was taken', () => {
  const lanes = new Lanes<string>();
  for (const id of ['a', 'b', 'a']) lanes.add(id, id, 'later');
  expect(lanes.size).toBe(2);
  expect(taken(lanes)).toEqual(['a', 'b']);
  lanes.add('a', 'a again', 'later');
  expect([taken(lanes), lanes.size]).toEqual([['a again'], 0]);
});

test('an id that is to come soon goes first, and one of eight is of the later ones', () => {
  const lanes = new Lanes<string>();
  for (const id of some('later', 3)) lanes.add(id, id, 'later');
  for (const id of some('soon', 20)) lanes.add(id, id, 'soon');
  const order = taken(lanes);
  expect(order.filter((id) => id.startsWith('soon'))).toEqual(some('soon', 20));
  expect(['later0', 'later1', 'later2'].map((id) => order.indexOf(id))).toEqual([7, 15, 22]);
});

test('an id that is to come soon after all leaves the other lane, and never goes back', () => {
  const lanes = new Lanes<string>();
  for (const id of some('h', 100)) lanes.add(id, id, 'later');
  lanes.add('h90', 'h90 soon', 'soon');
  lanes.add('h90', 'h90 later', 'later');
  const order = taken(lanes);
  expect(order).toHaveLength(100);
  expect(order[0]).toBe('h90 soon');
  expect(order).not.toContain('h90 later');
});

test('no id waits once the queue is cleared', () => {
  const lanes = new Lanes<string>();
  for (const id of some('h', 10)) lanes.add(id, id, 'soon');
  lanes.clear();
  expect([taken(lanes), lanes.size]).toEqual([[], 0]);
  lanes.add('h1', 'anew', 'later');
  expect(taken(lanes)).toEqual(['anew']);
});
