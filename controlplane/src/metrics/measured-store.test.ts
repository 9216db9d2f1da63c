/** A measured store returns the store's own results, and reports each call. */
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { measuredStore } from './index.ts';

test('each call gets the answer of the store, and its result is reported', async () => {
  const told: string[] = [];
  const inner = await openMemoryStore({ random: seededRandom(1) });
  const store = measuredStore(
    inner,
    () => 0,
    (call, result) => told.push(`${call} ${result}`),
  );
  expect(Object.keys(store).toSorted()).toContain('watch');
  const written = await store.put('a', new Uint8Array([1]), 'absent');
  expect(written.kind).toBe('ok');
  expect((await store.put('a', new Uint8Array([2]), 'absent')).kind).toBe('conflict');
  expect((await store.get('a')).kind).toBe('found');
  expect(await store.latestRevision()).toBe(await inner.latestRevision());
  await expect(store.get('..')).rejects.toThrow();
  expect(told).toEqual(['put ok', 'put conflict', 'get ok', 'latestRevision ok', 'get failed']);
  await store.close();
  await expect(inner.get('a')).rejects.toThrow();
});
