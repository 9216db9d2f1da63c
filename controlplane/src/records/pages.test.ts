/** A collection that is read a page at a time. */
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { groupsOf, pagesOf } from './pages.ts';

let store: StateStore;
let pausesMs: number[];
const clock = {
  after: (delayMs: number, go: () => void) => {
    pausesMs.push(delayMs);
    queueMicrotask(go);
    return () => {};
  },
};

beforeEach(async () => {
  store = await openMemoryStore({ random: seededRandom(1) });
  pausesMs = [];
});

const numbered = (at: number) => String(at).padStart(4, '0');

async function put(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    await store.put(`runs.u1.${numbered(at)}`, new Uint8Array(), 'absent');
  }
}

async function pages(): Promise<(readonly string[])[]> {
  const found: (readonly string[])[] = [];
  for await (const page of pagesOf(store, clock, 'runs')) found.push(page.map(({ key }) => key));
  return found;
}

test.each([
  [0, [0]],
  [1, [1]],
  [249, [249]],
  [250, [250, 0]],
  [251, [250, 1]],
  [600, [250, 250, 100]],
])('each of %i entries comes once, in the order of keys, page by page', async (count, sizes) => {
  await put(count);
  const found = await pages();
  expect(found.map(({ length }) => length)).toEqual(sizes);
  expect(found.flat()).toEqual(Array.from({ length: count }, (_, at) => `runs.u1.${numbered(at)}`));
  expect(pausesMs).toHaveLength(sizes.length - 1);
  expect(pausesMs.every((ms) => ms > 0)).toBe(true);
});

test('entries of other prefixes are not in it', async () => {
  await put(1);
  await store.put('runsOfOthers.u1', new Uint8Array(), 'absent');
  expect((await pages()).flat()).toEqual(['runs.u1.0000']);
});

test('entries come by groups of one segment, also where a group spans pages', async () => {
  const counts = { a: 3, b: 300, c: 1 };
  for (const [group, count] of Object.entries(counts)) {
    for (let at = 0; at < count; at += 1) {
      await store.put(`runs.${group}.${numbered(at)}`, new Uint8Array(), 'absent');
    }
  }
  const found: [string, number][] = [];
  for await (const { id, entries } of groupsOf(store, clock, 'runs', 1)) {
    expect(entries.every(({ key }) => key.startsWith(`runs.${id}.`))).toBe(true);
    found.push([id, entries.length]);
  }
  expect(found).toEqual(Object.entries(counts));
});

test('an empty prefix has no group; a key without the segment is a group of its own', async () => {
  const ids = async (segment: number) => {
    const found: string[] = [];
    for await (const { id } of groupsOf(store, clock, 'runs', segment)) found.push(id);
    return found;
  };
  expect(await ids(1)).toEqual([]);
  await store.put('runs.a', new Uint8Array(), 'absent');
  expect(await ids(1)).toEqual(['a']);
  expect(await ids(2)).toEqual(['']);
});
