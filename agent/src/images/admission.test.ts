import { afterMicrotasks } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { ImageAdmission } from './admission.ts';

const never = new AbortController().signal;

/** Enters without waiting for it; the outcome is noted. */
function crowd(atOnceMax: number, waitingMax = 100) {
  const admission = new ImageAdmission({ atOnceMax, waitingMax });
  const entered: string[] = [];
  const places = new Map<string, number>();
  const leaves = new Map<string, () => void>();
  const enter = async (who: string, name = who, signal = never): Promise<void> => {
    const leave = await admission.enter(who, signal, (place) => places.set(name, place));
    places.delete(name);
    entered.push(name);
    leaves.set(name, leave);
  };
  const leave = async (name: string): Promise<void> => {
    leaves.get(name)?.();
    await afterMicrotasks(10);
  };
  return { enter, entered, leave, places: () => Object.fromEntries(places) };
}

test('a bounded number of hosts is admitted at once; others are told their places', async () => {
  const { enter, entered, leave, places } = crowd(2);
  await Promise.all([enter('a'), enter('b')]);
  for (const who of ['c', 'd', 'e']) void enter(who);
  expect(places()).toEqual({ c: 1, d: 2, e: 3 });
  await leave('b');
  expect(entered).toEqual(['a', 'b', 'c']);
  expect(places()).toEqual({ d: 1, e: 2 });
  // Leaving twice lets nobody else in.
  await leave('b');
  expect(entered).toEqual(['a', 'b', 'c']);
});

test('every host gets its slot, however often another host asks', async () => {
  const { enter, entered, leave, places } = crowd(1);
  await enter('x');
  for (const number of [1, 2, 3]) void enter('a', `a${number}`);
  void enter('b');
  void enter('c');
  expect(places()).toEqual({ a1: 1, b: 2, c: 3, a2: 4, a3: 5 });
  for (const name of ['x', 'a1', 'b', 'c', 'a2']) await leave(name);
  expect(entered).toEqual(['x', 'a1', 'b', 'c', 'a2', 'a3']);
});

test('a host that has given up keeps no position in the queue', async () => {
  const { enter, entered, leave, places } = crowd(1);
  const stop = new AbortController();
  await enter('a');
  const gone = enter('b', 'b', stop.signal);
  void enter('c');
  stop.abort();
  await expect(gone).rejects.toMatchObject({ kind: 'cancelled', message: 'given up' });
  expect(places()).toMatchObject({ c: 1 });
  await leave('a');
  expect(entered).toEqual(['a', 'c']);
  await leave('c');
  await enter('d');
  await expect(enter('e', 'e', AbortSignal.abort())).rejects.toThrow('given up');
});

test('a host is refused when the queue is full', async () => {
  const { enter } = crowd(1, 2);
  await enter('a');
  void enter('b');
  void enter('c');
  await expect(enter('d')).rejects.toMatchObject({ kind: 'tooMany' });
});
