import { EventHeap, SimProcess } from '@rackwright/sim';
import { beforeEach, expect, test } from 'vitest';
import { Looks } from './index.ts';

let heap: EventHeap;
let stopping: AbortController;
let begun: string[];
let atOnce: number;
let mostAtOnce: number;

beforeEach(() => {
  heap = new EventHeap();
  stopping = new AbortController();
  [begun, atOnce, mostAtOnce] = [[], 0, 0];
});

/** Each look takes a millisecond. */
function looks(): Looks {
  const { clock } = new SimProcess('cp', heap, 0, () => false);
  const look = async (key: string) => {
    begun.push(key);
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    await new Promise<void>((resolve) => clock.after(1, resolve));
    atOnce -= 1;
  };
  return new Looks(clock, look, stopping.signal);
}

const many = Array.from({ length: 1_000 }, (_, at) => `h${at}`);
const urgent = (key: string) => key === 'h900' || key === 'h950';

test('many things are looked at once each, the urgent ones first, and few at a time', async () => {
  const all = looks();
  all.add(many, urgent);
  all.add(many.slice(500, 900), () => false);
  await heap.run(10_000, () => false);
  expect(begun.slice(0, 2)).toEqual(['h900', 'h950']);
  expect(begun.toSorted()).toEqual(many.toSorted());
  expect(mostAtOnce).toBe(32);
  expect(all.waiting).toBe(0);
});

test('what becomes urgent while it waits overtakes, and is looked at once', async () => {
  const all = looks();
  all.add(many, () => false);
  all.add(['h900'], () => true);
  await heap.run(10_000, () => false);
  expect(begun.indexOf('h900')).toBeLessThan(40);
  expect(begun).toHaveLength(many.length);
});

test('what was looked at is looked at again when it is added again', async () => {
  const all = looks();
  all.add(['a'], () => false);
  await heap.run(100, () => false);
  all.add(['a'], () => true);
  await heap.run(100, () => false);
  expect(begun).toEqual(['a', 'a']);
});

test('nothing is looked at once it is stopped', async () => {
  const all = looks();
  all.add(many, () => false);
  stopping.abort();
  await heap.run(10_000, () => false);
  expect(begun.length).toBeLessThan(64);
});
