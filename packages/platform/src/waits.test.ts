import { expect, test } from 'vitest';
import { References } from './testing/index.ts';
import { Waits } from './waits.ts';

const never = new Promise<never>(() => undefined);

test('each wait ends as its promise does, and none after the other side has failed', async () => {
  const waits = new Waits();
  expect(await waits.on(Promise.resolve(1))).toBe(1);
  await expect(waits.on(Promise.reject(new Error('mine')))).rejects.toThrow('mine');
  const failing = waits.on(never);
  waits.fail(new Error('theirs'));
  waits.fail(new Error('later'));
  await expect(failing).rejects.toThrow('theirs');
  await expect(waits.on(Promise.resolve(2))).rejects.toThrow('theirs');
});

test('an abort ends the wait under way and every later one', async () => {
  const aborting = new AbortController();
  const waits = new Waits(aborting.signal);
  expect(await waits.on(Promise.resolve(1))).toBe(1);
  const waiting = waits.on(never);
  aborting.abort();
  expect(await waiting).toBeUndefined();
  expect(await waits.on(Promise.resolve(2))).toBeUndefined();
  expect(await waits.on(Promise.reject(new Error('nobody hears it')))).toBeUndefined();
});

test('no reference is kept to a promise after its wait', async () => {
  const waits = new Waits(new AbortController().signal);
  const references = new References();
  const give = async (at: number) => {
    const message = { at };
    references.observe(message);
    await waits.on(Promise.resolve(message));
  };
  for (let at = 0; at < 10; at += 1) await give(at);
  // The last one is what the wait that is over has answered.
  expect(await references.taken(9)).toBeGreaterThanOrEqual(9);
});
