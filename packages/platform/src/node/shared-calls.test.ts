import { expect, test } from 'vitest';
import { shareCalls } from './shared-calls.ts';

/** Counts its calls; `state` is what a call finds. */
function shared() {
  const found = { calls: 0, state: 'old' };
  const look = shareCalls(async (key: string) => {
    found.calls += 1;
    return `${key} ${found.state}`;
  });
  return { found, look };
}

test('callers of one iteration share a call that begins after all questions', async () => {
  const { found, look } = shared();
  const first = look('a');
  const other = look('b');
  // A socket's data, and what waits for it, is handled within the iteration.
  await Promise.resolve();
  found.state = 'new';
  expect(await Promise.all([first, look('a'), other])).toEqual(['a new', 'a new', 'b new']);
  expect(found.calls).toBe(2);
});

test('a caller during a call gets a call of its own', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  let calls = 0;
  const look = shareCalls(() => {
    calls += 1;
    return calls === 1 ? promise : Promise.resolve(2);
  });
  const first = look('a');
  await new Promise((begun) => setImmediate(begun));
  expect(await look('a')).toBe(2);
  resolve(1);
  expect(await first).toBe(1);
});

test('an error is told to all who share the call, and to nobody after', async () => {
  let calls = 0;
  const look = shareCalls(async () => {
    calls += 1;
    if (calls === 1) throw new Error('planted');
    return calls;
  });
  const both = await Promise.allSettled([look('a'), look('a')]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await look('a')).toBe(2);
});
